// SPDX-License-Identifier: BSD-3-Clause
// Role: arithmetic of borrowed displacements, and the pages that pads lie in. Invariant: see the
// header.
#include "omp/atomic/landing_pads.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/fatal.hpp"
#include "omp/atomic/machine_code.hpp"

namespace hiroba::omp {
namespace {

constexpr std::uintptr_t lowest = 0x10000;            // vm.mmap_min_addr
constexpr std::uintptr_t highest = 0x7fff'ffff'0000;  // where programs' addresses end
constexpr std::size_t places_tried = 16;
constexpr std::size_t stack_growth = std::size_t{64} << 20;

/// Below the caller's stack, which may be the process's first one and still grow.
bool in_way_of_stack(std::uintptr_t page) {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - page < stack_growth;
}

}  // namespace

LandingPads::~LandingPads() {
    if (sealed_) return;
    for (const Page& page : pages_) munmap(reinterpret_cast<void*>(page.address), page_bytes);
}

dsm::AddressRange LandingPads::window(const CodeSite& site) {
    const std::size_t own_bytes = site.length - 1u;  // of the displacement, behind the opcode
    const unsigned own_bits = static_cast<unsigned>(own_bytes) * 8;
    std::uint32_t displacement = 0;
    memcpy(reinterpret_cast<std::byte*>(&displacement) + own_bytes,
           reinterpret_cast<const std::byte*>(site.address) + site.length,
           sizeof displacement - own_bytes);
    const auto distance = static_cast<std::int64_t>(static_cast<std::int32_t>(displacement));
    return {site.address + jump_bytes + static_cast<std::uintptr_t>(distance),
            std::size_t{1} << own_bits};
}

// The first free slot whose first byte lies in the window; 0: none in this page.
std::uintptr_t LandingPads::take_slot(Page& page, dsm::AddressRange window) {
    const std::uintptr_t begin = std::max(page.address, round_up(window.address, slot_bytes));
    const std::uintptr_t end = std::min(page.address + page_bytes, window.end());
    for (std::uintptr_t address = begin; address < end; address += slot_bytes) {
        const std::size_t slot = (address - page.address) / slot_bytes;
        if (page.used[slot]) continue;
        page.used.set(slot);
        return address;
    }
    return 0;
}

// A new page that holds a slot of the window; 0 when all places tried are taken. The window may lie
// outside what a process can map.
std::uintptr_t LandingPads::map_page(dsm::AddressRange window) {
    const std::size_t step =
        std::max(page_bytes, round_up(window.bytes / places_tried, page_bytes));
    // The page of the first slot, which may be the one behind the window's first byte.
    const std::uintptr_t begin = round_down(round_up(window.address, slot_bytes), page_bytes);
    for (std::uintptr_t at = begin; at < window.end(); at += step) {
        if (at < lowest || at >= highest) return 0;
        if (in_way_of_stack(at) || kept_free_.contains(at)) continue;
        void* const memory = mmap(reinterpret_cast<void*>(at), page_bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (memory == MAP_FAILED) continue;
        if (memory == reinterpret_cast<void*>(at)) return at;
        munmap(memory, page_bytes);  // a kernel before 4.17 takes the flag for a hint
    }
    return 0;
}

std::uintptr_t LandingPads::add(const CodeSite& site, std::uintptr_t trampoline) {
    HIROBA_INVARIANT(site.may_borrow && site.length >= 2 && site.length < jump_bytes,
                     "a landing pad for %u bytes at %lx", unsigned{site.length}, site.address);
    const dsm::AddressRange where = window(site);
    std::uintptr_t pad = 0;
    for (auto page = pages_.begin(); pad == 0 && page != pages_.end(); ++page) {
        pad = take_slot(*page, where);
    }
    if (pad == 0 && pages_.size() < pages_max) {
        const std::uintptr_t address = map_page(where);
        if (address == 0) return 0;
        pages_.push_back({address, {}});
        pad = take_slot(pages_.back(), where);
    }
    if (pad == 0) return 0;
    MachineCode code{reinterpret_cast<std::byte*>(pad)};
    code.jump_far(trampoline);
    return pad;
}

Result<void> LandingPads::seal() {
    for (const Page& page : pages_) {
        void* const memory = reinterpret_cast<void*>(page.address);
        if (auto made = make_executable("landing pads", memory, page_bytes); !made) return made;
    }
    sealed_ = true;
    return {};
}

}  // namespace hiroba::omp
