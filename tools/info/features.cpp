// SPDX-License-Identifier: BSD-3-Clause
// Role: one small attempt per kernel feature.
#include "tools/info/features.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "tools/machine.hpp"

namespace hiroba::tools {

namespace {

/// struct pm_scan_arg of Linux 6.7; build machines may have older headers.
struct ScanArgument {
    std::uint64_t size, flags, start, end, walk_end, regions, region_count, pages_max;
    std::uint64_t inverted, mask, any_of, wanted;
};
constexpr unsigned long scan_request = _IOWR('f', 16, ScanArgument);

Feature outcome(const char* name, bool usable, const char* purpose) {
    return {name, usable, usable ? purpose : ::strerror(errno)};
}

Feature try_userfaultfd() {
    const long fd = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    Feature feature = outcome("userfaultfd", fd >= 0, "page faults of user and kernel");
    if (!feature.usable) {
        constexpr int user_mode_only = 1;
        const long limited = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | user_mode_only);
        if (limited >= 0) {
            feature = {"userfaultfd", true,
                       "page faults of user mode alone: set "
                       "vm.unprivileged_userfaultfd=1 for the kernel's"};
            ::close(static_cast<int>(limited));
        }
    }
    if (fd >= 0) ::close(static_cast<int>(fd));
    return feature;
}

Feature try_pagemap_scan() {
    const char* const name = "PAGEMAP_SCAN";
    const int fd = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return outcome(name, false, "");
    constexpr std::size_t page = 4096;
    void* const memory =
        ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        ::close(fd);
        return outcome(name, false, "");
    }
    *static_cast<volatile char*>(memory) = 1;
    constexpr std::uint64_t is_present = 1u << 3;
    std::uint64_t region[3] = {};
    ScanArgument scan{};
    scan.size = sizeof scan;
    scan.start = reinterpret_cast<std::uintptr_t>(memory);
    scan.end = scan.start + page;
    scan.regions = reinterpret_cast<std::uintptr_t>(region);
    scan.region_count = 1;
    scan.mask = scan.wanted = is_present;
    const int found = ::ioctl(fd, scan_request, &scan);
    Feature feature = outcome(name, found == 1, "finds written pages without a fault each");
    if (found == 0) feature.detail = "it does not report a page that is present";
    ::munmap(memory, page);
    ::close(fd);
    return feature;
}

Feature try_memfd() {
    const int fd = ::memfd_create("hiroba-info", MFD_CLOEXEC);
    const bool usable = fd >= 0 && ::ftruncate(fd, 4096) == 0;
    Feature feature = outcome("memfd_create", usable, "memory that nodes share");
    if (fd >= 0) ::close(fd);
    return feature;
}

}  // namespace

std::vector<Feature> try_features() {
    std::vector<Feature> all = {try_userfaultfd(), try_pagemap_scan(), try_memfd()};
    all.push_back(outcome("personality", fix_addresses(), "equal addresses on all nodes"));
    return all;
}

}  // namespace hiroba::tools
