// SPDX-License-Identifier: BSD-3-Clause
// Role: the four requests to a userfaultfd and the scan of /proc/self/pagemap, as functions.
// Invariant: async-signal-safe; results are the kernel's, errors negative.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <span>

#include "dsm/memory/address_map.hpp"
#include "dsm/memory/kernel_calls.hpp"
#include "dsm/memory/kernel_constants.hpp"
#include "dsm/memory/page_calls.hpp"

namespace hiroba::dsm {

inline constexpr std::uint64_t uffd_features =
    uffd_feature_wp_async | UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
    UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_SIGBUS;

/// First writes to protected pages are faults of the program instead of the kernel's.
inline constexpr std::uint64_t uffd_features_of_faults = uffd_features & ~uffd_feature_wp_async;

/// A descriptor with these features on. User mode only: needs no privilege.
inline long open_uffd(std::uint64_t features = uffd_features) noexcept {
    const long fd = kernel_call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0) return fd;
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = features;
    const long enabled = kernel_call(SYS_ioctl, fd, UFFDIO_API, &api);
    if (enabled == 0) return fd;
    kernel_call(SYS_close, fd);
    return enabled;
}

/// MISSING too: where the memory has a hole, MINOR alone would silently map a zero page.
inline long uffd_register(int uffd, AddressRange range) noexcept {
    uffdio_register request{};
    request.range = {range.address, range.bytes};
    request.mode =
        UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP;
    return kernel_call(SYS_ioctl, uffd, UFFDIO_REGISTER, &request);
}

/// Its pages stay mapped as they are, without any protection.
inline long uffd_unregister(int uffd, AddressRange range) noexcept {
    uffdio_range request{range.address, range.bytes};
    return kernel_call(SYS_ioctl, uffd, UFFDIO_UNREGISTER, &request);
}

/// Maps pages that the memory holds. `mapped_bytes`: how far it came when it fails.
inline long uffd_continue(int uffd, AddressRange range, bool protect,
                          std::size_t& mapped_bytes) noexcept {
    uffdio_continue request{};
    request.range = {range.address, range.bytes};
    request.mode = protect ? uffdio_continue_mode_wp : 0;
    page_calls.note_call();
    const long result = kernel_call(SYS_ioctl, uffd, UFFDIO_CONTINUE, &request);
    mapped_bytes = request.mapped > 0 ? static_cast<std::size_t>(request.mapped) : 0;
    return result;
}

/// Maps pages that the memory does not hold yet, as zeros, up to the first that it holds.
/// `mapped_bytes`: how far it came when it fails. They are writable, and count as written.
inline long uffd_zero(int uffd, AddressRange range, std::size_t& mapped_bytes) noexcept {
    uffdio_zeropage request{};
    request.range = {range.address, range.bytes};
    page_calls.note_call();
    const long result = kernel_call(SYS_ioctl, uffd, UFFDIO_ZEROPAGE, &request);
    mapped_bytes = request.zeropage > 0 ? static_cast<std::size_t>(request.zeropage) : 0;
    return result;
}

/// Lifts write protection, after which the pages count as written.
inline long uffd_unprotect(int uffd, AddressRange range) noexcept {
    uffdio_writeprotect request{};
    request.range = {range.address, range.bytes};
    page_calls.note_call();
    return kernel_call(SYS_ioctl, uffd, UFFDIO_WRITEPROTECT, &request);
}

/// The next write to each page, mapped or not, is noticed.
inline long uffd_protect(int uffd, AddressRange range) noexcept {
    uffdio_writeprotect request{};
    request.range = {range.address, range.bytes};
    request.mode = UFFDIO_WRITEPROTECT_MODE_WP;
    page_calls.note_call();
    return kernel_call(SYS_ioctl, uffd, UFFDIO_WRITEPROTECT, &request);
}

/// The kernel refuses with ENOENT a range that several of its mappings make up: a call that gives a
/// part of the range a property of its own (mbind, mlock, madvise) has split it. Half of it is
/// tried then. Down to a page that lies in no registered mapping, which stays an error.
constexpr std::size_t smaller_step(std::size_t bytes) noexcept {
    return std::max(round_down(bytes / 2, page_bytes), page_bytes);
}

/// `call` for the whole range, in as many pieces as the kernel's mappings ask for.
template <class Call>
long in_pieces(AddressRange range, Call&& call) noexcept {
    for (std::size_t step = range.bytes; range.bytes > 0;) {
        const AddressRange piece{range.address, std::min(step, range.bytes)};
        const long result = call(piece);
        if (result == -ENOENT && piece.bytes > page_bytes) {
            step = smaller_step(piece.bytes);
            continue;
        }
        if (result != 0) return result;
        range = {piece.end(), range.bytes - piece.bytes};
        step = 2 * piece.bytes;
    }
    return 0;
}

enum class AfterScan : std::uint8_t { leave, protect };

/// Finds pages written since they were protected last, and perhaps protects them again. Asking for
/// nothing but "written" is what the kernel has its short loop for.
/// @param stopped  out: where the walk ended; not `end` when the regions were full
/// @return number of regions
inline long scan_written(int pagemap, std::uintptr_t start, std::uintptr_t end, AfterScan after,
                         std::span<ScanRegion> regions, std::uintptr_t& stopped) noexcept {
    ScanArgument argument{};
    argument.size = sizeof argument;
    argument.flags = after == AfterScan::protect ? scan_wp_matching : 0;
    argument.start = start;
    argument.end = end;
    argument.vec = reinterpret_cast<std::uintptr_t>(regions.data());
    argument.vec_len = regions.size();
    argument.category_mask = page_is_written;
    argument.return_mask = page_is_written;
    page_calls.note_call();
    const long result = kernel_call(SYS_ioctl, pagemap, pagemap_scan_request, &argument);
    stopped = argument.walk_end;
    return result;
}

/// Whether a page is not mapped.
inline bool lacks_page(int pagemap, std::uintptr_t start, std::uintptr_t end) noexcept {
    ScanRegion first{};
    ScanArgument argument{};
    argument.size = sizeof argument;
    argument.start = start;
    argument.end = end;
    argument.vec = reinterpret_cast<std::uintptr_t>(&first);
    argument.vec_len = argument.max_pages = 1;
    argument.category_inverted = argument.category_mask = page_is_present;
    argument.return_mask = page_is_present;
    page_calls.note_call();
    return kernel_call(SYS_ioctl, pagemap, pagemap_scan_request, &argument) > 0;
}

}  // namespace hiroba::dsm
