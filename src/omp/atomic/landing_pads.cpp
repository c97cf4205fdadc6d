// SPDX-License-Identifier: BSD-3-Clause
// Role: arithmetic of borrowed displacements, and the pages that pads lie in. Invariant: see the
// header.
#include "omp/atomic/landing_pads.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/fatal.hpp"
#include "omp/atomic/machine_code.hpp"

namespace hiroba::omp {
namespace {

constexpr std::uintptr_t lowest = 0x10000;            // vm.mmap_min_addr
constexpr std::uintptr_t highest = 0x7fff'ffff'0000;  // where programs' addresses end
constexpr std::size_t places_tried = 16;
constexpr std::size_t stack_growth = std::size_t{64} << 20;
// Many sites share a wide window: those whose next instruction begins alike.
constexpr std::size_t wide_window = std::size_t{1} << 20, wide_area = 16 * page_bytes;

constinit std::atomic<std::size_t> areas_mapped{0};

/// Below the caller's stack, which may be the process's first one and still grow.
bool in_way_of_stack(std::uintptr_t page) {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - page < stack_growth;
}

}  // namespace

LandingPads::~LandingPads() {
    if (sealed_) return;
    for (const dsm::AddressRange& area : areas_)
        munmap(reinterpret_cast<void*>(area.address), area.bytes);
    areas_mapped -= areas_.size();
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
std::uintptr_t LandingPads::take_slot(Pages::value_type& page, dsm::AddressRange window) {
    auto& [first, taken] = page;
    const std::uintptr_t begin = std::max(first, round_up(window.address, slot_bytes));
    const std::uintptr_t end = std::min(first + page_bytes, window.end());
    for (std::uintptr_t address = begin; address < end; address += slot_bytes) {
        const std::size_t slot = (address - first) / slot_bytes;
        if (taken[slot]) continue;
        taken.set(slot);
        return address;
    }
    return 0;
}

std::uintptr_t LandingPads::take_slot(dsm::AddressRange window) {
    const std::uintptr_t begin = round_down(window.address, page_bytes);
    for (auto page = pages_.lower_bound(begin); page != pages_.end() && page->first < window.end();
         ++page) {
        const std::uintptr_t slot = take_slot(*page, window);
        if (slot == 0) continue;
        if (page->second.all()) pages_.erase(page);
        return slot;
    }
    return 0;
}

// New pages that hold slots of the window; false when all places tried are taken. The window may
// lie outside what a process can map.
bool LandingPads::map_area(dsm::AddressRange window) {
    const std::size_t step =
        std::max(page_bytes, round_up(window.bytes / places_tried, page_bytes));
    const std::size_t bytes = window.bytes >= wide_window ? wide_area : page_bytes;
    // The page of the first slot, which may be the one behind the window's first byte.
    const std::uintptr_t begin = round_down(round_up(window.address, slot_bytes), page_bytes);
    for (std::uintptr_t at = begin; at < window.end(); at += step) {
        if (at < lowest || at >= highest) return false;
        if (in_way_of_stack(at) || kept_free_.contains(at)) continue;
        void* const memory = mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (memory == MAP_FAILED) continue;
        if (memory == reinterpret_cast<void*>(at)) {
            areas_.push_back({at, bytes});
            ++areas_mapped;
            for (std::size_t i = 0; i < bytes; i += page_bytes) pages_.emplace(at + i, Slots{});
            return true;
        }
        munmap(memory, bytes);  // a kernel before 4.17 takes the flag for a hint
    }
    return false;
}

std::uintptr_t LandingPads::add(const CodeSite& site, std::uintptr_t trampoline) {
    HIROBA_INVARIANT(site.may_borrow && site.length >= 2 && site.length < jump_bytes,
                     "a landing pad for %u bytes at %lx", unsigned{site.length}, site.address);
    const dsm::AddressRange where = window(site);
    std::uintptr_t pad = take_slot(where);
    if (pad == 0 && areas_mapped < areas_max && map_area(where)) pad = take_slot(where);
    if (pad == 0) return 0;
    MachineCode code{reinterpret_cast<std::byte*>(pad)};
    code.jump_far(trampoline);
    return pad;
}

Result<void> LandingPads::seal() {
    for (const dsm::AddressRange& area : areas_) {
        void* const memory = reinterpret_cast<void*>(area.address);
        if (auto made = make_executable("landing pads", memory, area.bytes); !made) return made;
    }
    sealed_ = true;
    return {};
}

}  // namespace hiroba::omp
