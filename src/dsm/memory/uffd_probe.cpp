// SPDX-License-Identifier: BSD-3-Clause
// Role: tries everything the userfaultfd engine needs on three pages of its own.
// Invariant: the reason of a failure names the step and the kernel version or setting it needs.
#include "dsm/memory/uffd_probe.hpp"

#include <linux/memfd.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <string>

#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/uffd_calls.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::size_t trial_pages = 3;

/// Three pages: one under the userfaultfd, a foreign one, another one under the userfaultfd.
class Trial {
public:
    Trial() {
        const std::size_t bytes = trial_pages * page_bytes;
        fd_ = kernel_call(SYS_memfd_create, "hiroba-probe", MFD_CLOEXEC);
        if (fd_ < 0 || kernel_call(SYS_ftruncate, fd_, bytes) < 0) return;
        alias_ = mapping(0, MAP_SHARED, fd_);
        pages_ = mapping(0, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        if (alias_ == 0 || pages_ == 0) return;
        std::memset(reinterpret_cast<void*>(alias_), 1, bytes);
        std::memset(reinterpret_cast<void*>(pages_), 1, bytes);
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    ~Trial() {
        for (const std::uintptr_t at : {alias_, pages_})
            if (at != 0) kernel_call(SYS_munmap, at, trial_pages * page_bytes);
        if (fd_ >= 0) kernel_call(SYS_close, fd_);
    }

    AddressRange page(std::size_t index) const { return {pages_ + index * page_bytes, page_bytes}; }

    /// Empty when pages 0 and 2 are under `uffd`, mapped and protected; otherwise the failed step.
    std::string prepare(int uffd) {
        if (fd_ < 0 || alias_ == 0 || pages_ == 0) return "no memory for a trial of userfaultfd";
        for (const std::size_t index : {std::size_t{0}, std::size_t{2}}) {
            const AddressRange at = page(index);
            const long mapped =
                kernel_call(SYS_mmap, at.address, page_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED, fd_, index * page_bytes);
            if (kernel_failed(mapped)) return "no memory for a trial of userfaultfd";
            if (uffd_register(uffd, at) != 0)
                return "userfaultfd refuses shared memory with minor faults and write protection";
            std::size_t done = 0;
            if (uffd_continue(uffd, at, true, done) != 0)
                return "UFFDIO_CONTINUE cannot write-protect (needs Linux 6.4)";
        }
        return {};
    }

private:
    static std::uintptr_t mapping(std::uintptr_t at, int flags, long fd) {
        const long result = kernel_call(SYS_mmap, at, trial_pages * page_bytes,
                                        PROT_READ | PROT_WRITE, flags, fd, 0);
        return kernel_failed(result) ? 0 : static_cast<std::uintptr_t>(result);
    }

    long fd_ = -1;
    std::uintptr_t alias_ = 0;
    std::uintptr_t pages_ = 0;
};

/// Empty when the kernel notes the first write to a protected page, once.
std::string try_tracking(const Trial& trial, int pagemap) {
    const AddressRange page = trial.page(0);
    ScanRegion region{};
    std::uintptr_t stopped = 0;
    const auto written = [&] {
        return scan_written(pagemap, page.address, page.end(), AfterScan::protect, {&region, 1},
                            stopped);
    };
    if (written() < 0) return "PAGEMAP_SCAN is not there (needs Linux 6.7)";
    *reinterpret_cast<volatile char*>(page.address) = 2;
    if (written() != 1 || written() != 0)
        return "PAGEMAP_SCAN does not tell written pages from others";
    return {};
}

std::string try_all() {
    const long uffd = open_uffd();
    if (uffd == -EINVAL) return "userfaultfd lacks asynchronous write protection (needs Linux 6.7)";
    if (uffd == -EPERM) return "userfaultfd is not permitted (seccomp, container profile)";
    if (uffd < 0) return "userfaultfd: " + std::string(std::strerror(static_cast<int>(-uffd)));
    const long pagemap =
        kernel_call(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
    std::string reason;
    if (pagemap < 0) {
        reason = "/proc/self/pagemap cannot be opened";
    } else {
        Trial trial;
        reason = trial.prepare(static_cast<int>(uffd));
        if (reason.empty()) reason = try_tracking(trial, static_cast<int>(pagemap));
        kernel_call(SYS_close, pagemap);
    }
    kernel_call(SYS_close, uffd);
    return reason;
}

}  // namespace

bool scan_skips_foreign(int uffd, int pagemap) {
    Trial trial;
    if (!trial.prepare(uffd).empty()) return false;
    std::array<ScanRegion, trial_pages> regions{};
    std::uintptr_t stopped = 0;
    return scan_written(pagemap, trial.page(0).address, trial.page(2).end(), AfterScan::protect,
                        regions, stopped) == 0;
}

EngineProbe probe_uffd() {
    std::string reason = try_all();
    if (!reason.empty()) return {false, std::move(reason)};
    return {true, "userfaultfd with minor faults, asynchronous write protection and PAGEMAP_SCAN"};
}

}  // namespace hiroba::dsm
