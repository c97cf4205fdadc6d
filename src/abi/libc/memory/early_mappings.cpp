// SPDX-License-Identifier: BSD-3-Clause
// Role: the range of early mappings: kernel memory at a pointer that only rises.
#include "abi/libc/memory/early_mappings.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "dsm/memory/kernel_calls.hpp"
#include "dsm/memory/reserved_range.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;

constinit EarlyMappings of_process;

/// From this size on the kernel, too, aligns so: huge pages fit.
constexpr std::size_t large_bytes = std::size_t{2} << 20;

void* fail(int error) noexcept {
    errno = error;
    return MAP_FAILED;
}

}  // namespace

EarlyMappings& early_mappings() noexcept { return of_process; }

/// With the latch. Only below what sanitizers and global memory take. False: it goes elsewhere.
bool EarlyMappings::place(std::uintptr_t wish, std::size_t bytes, int protection,
                          int flags) noexcept {
    constexpr std::uintptr_t lowest = std::uintptr_t{64} << 30, highest = 0x1000'0000'0000;
    std::size_t taken = 0;
    dsm::AddressRange* free = nullptr;
    for (dsm::AddressRange& each : placed_) {
        taken += each.bytes;
        if (each.bytes == 0 && free == nullptr) free = &each;
    }
    if (free == nullptr || announced_ || bytes > placed_bytes_max - taken || wish < lowest ||
        wish > highest - bytes || wish % page_bytes != 0)
        return false;
    const long made = kernel_call(SYS_mmap, wish, bytes, protection,
                                  flags | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (dsm::kernel_failed(made)) return false;
    if (made != static_cast<long>(wish)) {  // a kernel that takes it for a wish
        kernel_call(SYS_munmap, made, bytes);
        return false;
    }
    *free = {wish, bytes};
    return true;
}

// The gap before an aligned one is mapped, too, so that the range has no hole.
void* EarlyMappings::map(void* wish, std::size_t bytes, int protection, int flags) noexcept {
    if (bytes == 0) return fail(EINVAL);
    if (bytes > bytes_max) return fail(ENOMEM);
    bytes = round_up(bytes, page_bytes);
    constexpr int not_here =
        MAP_HUGETLB | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE | MAP_32BIT | MAP_STACK;
    flags &= ~not_here;
    const std::scoped_lock guard{latch_};
    if (place(reinterpret_cast<std::uintptr_t>(wish), bytes, protection, flags)) return wish;
    const std::uintptr_t at =
        round_up(next_, std::uintptr_t{bytes >= large_bytes ? large_bytes : page_bytes});
    if (!hands_out_ || at > limit_ || bytes > limit_ - at) return fail(ENOMEM);
    if (!given_over_) {
        if (const int error = dsm::reserve_range({next_, at + bytes - next_}); error != 0)
            return fail(error);
        const long made =
            kernel_call(SYS_mmap, at, bytes, protection, flags | MAP_NORESERVE | MAP_FIXED, -1, 0);
        if (dsm::kernel_failed(made)) return fail(static_cast<int>(-made));
    }
    next_ = at + bytes;
    return reinterpret_cast<void*>(at);
}

int EarlyMappings::unmap(void* address, std::size_t bytes) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::scoped_lock guard{latch_};
    bytes = round_up(bytes, page_bytes);
    const dsm::AddressRange* const placed = find_placed(at);
    const std::uintptr_t end = placed != nullptr ? placed->end() : next_;
    if (at % page_bytes != 0 || bytes == 0 || at > end || bytes > end - at) {
        errno = EINVAL;
        return -1;
    }
    if (given_over_) return 0;
    const long made = kernel_call(SYS_mmap, at, bytes, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (!dsm::kernel_failed(made)) return 0;
    errno = static_cast<int>(-made);
    return -1;
}

EarlyMappings::Ranges EarlyMappings::announce() noexcept {
    const std::scoped_lock guard{latch_};
    announced_ = true;
    Ranges ranges{};
    std::ranges::copy(placed_, ranges.begin() + 1);
    if (next_ == base) {
        hands_out_ = false;
        return ranges;
    }
    limit_ = std::min(base + bytes_max, round_up(next_ + spare_bytes, std::uintptr_t{large_bytes}));
    ranges[0] = {base, limit_ - base};
    return ranges;
}

bool EarlyMappings::is_agreed(dsm::AddressRange range) const noexcept {
    return std::ranges::any_of(agreed_, [&](const dsm::AddressRange& each) {
        return each.address == range.address && each.bytes == range.bytes && each.bytes > 0;
    });
}

/// With the latch.
int EarlyMappings::give_over_placed(dsm::AddressRange range, bool is_first_node) noexcept {
    const dsm::AddressRange* const own = find_placed(range.address);
    const bool same = own != nullptr && own->address == range.address && own->bytes == range.bytes;
    if (!same) return own != nullptr ? EEXIST : dsm::reserve_range(range);
    if (!is_first_node) return 0;
    return static_cast<int>(
        -kernel_call(SYS_mprotect, range.address, range.bytes, PROT_READ | PROT_WRITE));
}

// On node 0 what the program keeps inaccessible is made readable, for all of it is read once.
int EarlyMappings::give_over(dsm::AddressRange range, bool is_first_node) noexcept {
    const std::scoped_lock guard{latch_};
    given_over_ = true;
    if (range.address != base) return give_over_placed(range, is_first_node);
    hands_out_ = is_first_node;
    if (range.end() > next_) {
        const int error = dsm::reserve_range({next_, range.end() - next_});
        if (error != 0) return error;
    }
    if (!is_first_node) return 0;
    const long result =
        kernel_call(SYS_mprotect, range.address, range.bytes, PROT_READ | PROT_WRITE);
    return static_cast<int>(-result);
}

}  // namespace hiroba::abi
