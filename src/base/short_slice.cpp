// SPDX-License-Identifier: BSD-3-Clause
// Role: see short_slice.hpp. The C library has neither the call nor its structure.
#include "base/short_slice.hpp"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/thread_context.hpp"

namespace hiroba {
namespace {

constexpr std::uint64_t slice_of_service_ns = 100'000, slice_of_program_ns = 200'000;
constexpr std::uint64_t reset_on_fork = 1;
constexpr unsigned long timer_slack_ns = 1'000;

/// `struct sched_attr` of linux/sched/types.h, version 0.
struct SchedulingAttributes {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns;
    std::uint64_t deadline_ns;
    std::uint64_t period_ns;
};

}  // namespace

void ask_for_short_slices(ShortSlice whose) noexcept {
    const int saved_errno = errno;
    if (whose == ShortSlice::of_service) {
        this_thread().is_service = true;
        prctl(PR_SET_TIMERSLACK, timer_slack_ns);  // so that it sleeps as briefly as it asks
    }
    SchedulingAttributes attributes{};
    // Keeps a policy that the user has chosen.
    const bool known = syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0 &&
                       attributes.policy == SCHED_OTHER;
    if (known) {
        attributes.size = sizeof attributes;
        const bool of_service = whose == ShortSlice::of_service;
        if (of_service) attributes.flags |= reset_on_fork;
        attributes.runtime_ns = of_service ? slice_of_service_ns : slice_of_program_ns;
        // A wish: an older kernel ignores it, a sandbox may refuse it.
        static_cast<void>(syscall(SYS_sched_setattr, 0, &attributes, 0));
    }
    errno = saved_errno;
}

}  // namespace hiroba
