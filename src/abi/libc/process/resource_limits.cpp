// SPDX-License-Identifier: BSD-3-Clause
// Role: see resource_limits.hpp.
#include "abi/libc/process/resource_limits.hpp"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/process_state.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;
using dsm::kernel_failed;

constinit Latch changing;
constinit ResourceLimits own;
constinit std::atomic<std::uint64_t> memory_max{UINT64_MAX}, descriptors_max{UINT64_MAX};

bool is_own_business(unsigned which) noexcept {
    return which == RLIMIT_AS || which == RLIMIT_DATA || which == RLIMIT_NOFILE;
}

bool has_changed(const ResourceLimits& limits, unsigned which) noexcept {
    return (limits.changed >> which & 1) != 0;
}

std::uint64_t soft(const ResourceLimits& limits, unsigned which) noexcept {
    const rlim_t value = limits.of[which].rlim_cur;
    return has_changed(limits, which) && value != RLIM_INFINITY ? value : UINT64_MAX;
}

/// Under `changing`.
void measure() noexcept {
    memory_max.store(std::min(soft(own, RLIMIT_AS), soft(own, RLIMIT_DATA)));
    descriptors_max.store(soft(own, RLIMIT_NOFILE));
}

/// As the kernel would answer.
long set_own(unsigned which, const rlimit& wanted) noexcept {
    const rlimit now = own.of[which];
    if (wanted.rlim_cur > wanted.rlim_max) return -EINVAL;
    if (wanted.rlim_max > now.rlim_max && kernel_call(SYS_geteuid) != 0) return -EPERM;
    return 0;
}

long change(unsigned which, const rlimit* wanted, rlimit* before) noexcept {
    if (which >= RLIM_NLIMITS) return -EINVAL;
    // The program's structures may lie in global memory.
    rlimit next{}, former{};
    if (wanted != nullptr) next = *wanted;
    {
        const std::scoped_lock guard{changing};
        former = own.of[which];
        if (wanted != nullptr) {
            const long result = is_own_business(which)
                                    ? set_own(which, next)
                                    : kernel_call(SYS_prlimit64, 0, which, &next, 0);
            if (kernel_failed(result)) return result;
            own.of[which] = next;
            own.changed |= 1u << which;
            measure();
        }
    }
    if (before != nullptr) *before = former;
    if (wanted != nullptr) process_state_changed("setrlimit()");
    return 0;
}

}  // namespace

void note_first_limits() noexcept {
    for (unsigned which = 0; which < RLIM_NLIMITS; ++which)
        kernel_call(SYS_prlimit64, 0, which, 0, &own.of[which]);
}

ResourceLimits resource_limits() noexcept {
    const std::scoped_lock guard{changing};
    return own;
}

void take_resource_limits(const ResourceLimits& of_node_0) noexcept {
    const std::scoped_lock guard{changing};
    for (unsigned which = 0; which < RLIM_NLIMITS; ++which) {
        const rlimit& wanted = of_node_0.of[which];
        if (!has_changed(of_node_0, which) ||
            (has_changed(own, which) && memcmp(&own.of[which], &wanted, sizeof wanted) == 0))
            continue;
        const long result =
            is_own_business(which) ? 0 : kernel_call(SYS_prlimit64, 0, which, &wanted, 0);
        if (kernel_failed(result)) {
            die(exit_environment,
                "node 0 has set resource limit %u to %lu of %lu, which this node cannot have: %s. "
                "Raise the limits of every host alike",
                which, wanted.rlim_cur, wanted.rlim_max, strerror(static_cast<int>(-result)));
        }
        own.of[which] = wanted;
        own.changed |= 1u << which;
    }
    measure();
}

std::optional<long> perform_limit_call(long number, const long* a) noexcept {
    const bool is_one =
        number == SYS_getrlimit || number == SYS_setrlimit || number == SYS_prlimit64;
    // A child of vfork() prepares its own.
    if (!is_one || !is_node_process()) return {};
    const auto which = [&](int argument) { return static_cast<unsigned>(a[argument]); };
    if (number == SYS_getrlimit) return change(which(0), nullptr, reinterpret_cast<rlimit*>(a[1]));
    if (number == SYS_setrlimit)
        return change(which(0), reinterpret_cast<const rlimit*>(a[1]), nullptr);
    if (number != SYS_prlimit64 || (a[0] != 0 && a[0] != kernel_call(SYS_getpid))) return {};
    return change(which(1), reinterpret_cast<const rlimit*>(a[2]), reinterpret_cast<rlimit*>(a[3]));
}

std::uint64_t own_memory_limit() noexcept { return memory_max.load(std::memory_order_relaxed); }

std::uint64_t own_descriptor_limit() noexcept {
    return descriptors_max.load(std::memory_order_relaxed);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int prlimit(pid_t process, __rlimit_resource which, const rlimit* wanted, rlimit* before) noexcept {
    return static_cast<int>(
        call_from(HIROBA_CALLER, SYS_prlimit64, process, static_cast<int>(which), wanted, before));
}

}  // extern "C"
