// SPDX-License-Identifier: BSD-3-Clause
// Role: kernel interfaces newer than the oldest headers we build with (Linux 6.1), under our own
// names. The one file that defines such constants; layouts are the kernel's ABI and never change.
// Source: include/uapi/linux/{userfaultfd,fs,mman,pidfd}.h of Linux 6.7 and later.
#pragma once

#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace hiroba::dsm {

// userfaultfd: features since 6.4 and 6.7, and the mode of UFFDIO_CONTINUE since 6.4.
inline constexpr std::uint64_t uffd_feature_wp_async = 1u << 15;
inline constexpr std::uint64_t uffdio_continue_mode_wp = 1u << 1;

/// One report of PAGEMAP_SCAN: [start, end) has all of `categories`.
struct ScanRegion {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t categories;
};

/// The argument of PAGEMAP_SCAN (struct pm_scan_arg).
struct ScanArgument {
    std::uint64_t size;
    std::uint64_t flags;
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t walk_end;  ///< out: where the walk stopped
    std::uint64_t vec;       ///< address of ScanRegion[vec_len]
    std::uint64_t vec_len;
    std::uint64_t max_pages;
    std::uint64_t category_inverted;
    std::uint64_t category_mask;
    std::uint64_t category_anyof_mask;
    std::uint64_t return_mask;
};
static_assert(sizeof(ScanArgument) == 96 && sizeof(ScanRegion) == 24);

inline constexpr unsigned long pagemap_scan_request = _IOWR('f', 16, ScanArgument);
inline constexpr std::uint64_t scan_wp_matching = 1u << 0;
inline constexpr std::uint64_t scan_check_wp_async = 1u << 1;
inline constexpr std::uint64_t page_is_wp_allowed = 1u << 0;
inline constexpr std::uint64_t page_is_written = 1u << 1;
inline constexpr std::uint64_t page_is_present = 1u << 3;

// madvise since 5.14.
inline constexpr int madv_populate_read = 22;

}  // namespace hiroba::dsm
