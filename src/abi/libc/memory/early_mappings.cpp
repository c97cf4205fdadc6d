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

// The gap before an aligned one is mapped, too, so that the range has no hole.
void* EarlyMappings::map(std::size_t bytes, int protection, int flags) noexcept {
    if (bytes == 0) return fail(EINVAL);
    if (bytes > bytes_max) return fail(ENOMEM);
    bytes = round_up(bytes, page_bytes);
    const std::scoped_lock guard{latch_};
    const std::uintptr_t at =
        round_up(next_, std::uintptr_t{bytes >= large_bytes ? large_bytes : page_bytes});
    if (!hands_out_ || at > limit_ || bytes > limit_ - at) return fail(ENOMEM);
    if (!given_over_) {
        if (const int error = dsm::reserve_range({next_, at + bytes - next_}); error != 0)
            return fail(error);
        constexpr int not_here =
            MAP_HUGETLB | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE | MAP_32BIT | MAP_STACK;
        const long made = kernel_call(SYS_mmap, at, bytes, protection,
                                      (flags & ~not_here) | MAP_NORESERVE | MAP_FIXED, -1, 0);
        if (dsm::kernel_failed(made)) return fail(static_cast<int>(-made));
    }
    next_ = at + bytes;
    return reinterpret_cast<void*>(at);
}

int EarlyMappings::unmap(void* address, std::size_t bytes) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::scoped_lock guard{latch_};
    bytes = round_up(bytes, page_bytes);
    if (at % page_bytes != 0 || bytes == 0 || at > next_ || bytes > next_ - at) {
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

dsm::AddressRange EarlyMappings::announce() noexcept {
    const std::scoped_lock guard{latch_};
    announced_ = true;
    if (next_ == base) {
        hands_out_ = false;
        return {};
    }
    limit_ = std::min(base + bytes_max, round_up(next_ + spare_bytes, std::uintptr_t{large_bytes}));
    return {base, limit_ - base};
}

// On node 0 what the program keeps inaccessible is made readable, for all of it is read once.
int EarlyMappings::give_over(dsm::AddressRange range, bool is_first_node) noexcept {
    const std::scoped_lock guard{latch_};
    given_over_ = true;
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
