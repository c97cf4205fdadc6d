// SPDX-License-Identifier: BSD-3-Clause
// Role: see kept_mappings.hpp. Defines mmap and munmap for the program that it is linked into.
#include "sim/kept_mappings.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/bytes.hpp"
#include "dsm/memory/kernel_constants.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::size_t page = 4096;

struct Mapping {
    std::byte* at;
    std::size_t bytes;
    int flags;
    bool suggested;  ///< the caller named the address
    bool free;       ///< its owner has unmapped it
};

int pagemap = -1;  ///< of this process
bool keeping = false;
std::vector<Mapping> mappings;

void* map(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}

int unmap(void* at, std::size_t bytes) {
    return static_cast<int>(::syscall(SYS_munmap, at, bytes));
}

bool overlaps(const Mapping& mapping, const void* at, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(at);
    return mapping.at < first + bytes && first < mapping.at + mapping.bytes;
}

/// Forgets the mappings that share an address with these; unmaps those that are free.
void forget(const void* at, std::size_t bytes) {
    std::erase_if(mappings, [&](const Mapping& mapping) {
        if (!overlaps(mapping, at, bytes)) return false;
        if (mapping.free && unmap(mapping.at, mapping.bytes) != 0) std::abort();
        return true;
    });
}

long scan(dsm::ScanArgument& scan) { return ioctl(pagemap, dsm::pagemap_scan_request, &scan); }

/// Writes zeros into every page that was ever touched.
void clear(const Mapping& mapping) {
    std::array<dsm::ScanRegion, 256> touched;
    const auto first = reinterpret_cast<std::uintptr_t>(mapping.at);
    const std::uintptr_t end = first + mapping.bytes;
    for (std::uintptr_t at = first; at < end;) {
        dsm::ScanArgument argument{};
        argument.size = sizeof argument;
        argument.start = at;
        argument.end = end;
        argument.vec = reinterpret_cast<std::uintptr_t>(touched.data());
        argument.vec_len = touched.size();
        argument.category_mask = argument.return_mask = dsm::page_is_present;
        const long regions = scan(argument);
        if (regions < 0) std::abort();
        for (long i = 0; i < regions; ++i) {
            const dsm::ScanRegion& region = touched[static_cast<std::size_t>(i)];
            std::memset(mapping.at + (region.start - first), 0, region.end - region.start);
        }
        at = argument.walk_end;
    }
}

bool can_be_kept(int protection, int flags) {
    return keeping && protection == (PROT_READ | PROT_WRITE) &&
           (flags & ~MAP_NORESERVE) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

/// The free mapping that was made first, of those that would do; else nullptr. Equal programs take
/// the same ones.
Mapping* find_free(const void* at, std::size_t bytes, int flags) {
    const auto found = std::find_if(mappings.begin(), mappings.end(), [&](const Mapping& one) {
        return one.free && one.bytes == bytes && one.flags == flags &&
               one.suggested == (at != nullptr) && (at == nullptr || at == one.at);
    });
    return found == mappings.end() ? nullptr : &*found;
}

}  // namespace

void keep_mappings() noexcept {
    if (pagemap < 0) pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    dsm::ScanArgument nothing{};
    nothing.size = sizeof nothing;
    keeping = pagemap >= 0 && scan(nothing) >= 0;
}

}  // namespace hiroba::sim_test

extern "C" void* mmap(void* at, std::size_t bytes, int protection, int flags, int file,
                      off_t offset) noexcept {
    using namespace hiroba::sim_test;
    bytes = hiroba::round_up(bytes, page);
    if (!can_be_kept(protection, flags)) {
        if (at != nullptr) forget(at, bytes);
        return map(at, bytes, protection, flags, file, offset);
    }
    if (Mapping* const found = find_free(at, bytes, flags)) {
        found->free = false;
        clear(*found);
        return found->at;
    }
    if (at != nullptr) forget(at, bytes);
    void* const made = map(at, bytes, protection, flags, file, offset);
    if (made == MAP_FAILED) return made;
    mappings.push_back({static_cast<std::byte*>(made), bytes, flags, at != nullptr, false});
    return made;
}

extern "C" int munmap(void* at, std::size_t bytes) noexcept {
    using namespace hiroba::sim_test;
    bytes = hiroba::round_up(bytes, page);
    const auto found = std::find_if(mappings.begin(), mappings.end(), [&](const Mapping& one) {
        return !one.free && one.at == at && one.bytes == bytes;
    });
    if (found == mappings.end()) {
        forget(at, bytes);
        return unmap(at, bytes);
    }
    found->free = true;
    return 0;
}
