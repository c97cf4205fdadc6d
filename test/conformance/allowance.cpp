// SPDX-License-Identifier: BSD-3-Clause
#include "conformance/allowance.hpp"

#include <time.h>

#include <algorithm>

#include "base/clock.hpp"

namespace hiroba::conformance {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t cores_least = 2;
/// An idle node uses less of a core (Waiting.an_idle_node_uses_less_than_a_hundredth_of_a_core).
constexpr std::uint64_t idle_share = 100;

}  // namespace

Allowance::Allowance(std::uint64_t allowed_ns, std::size_t processes, std::uint64_t times_slower)
    : allowed_ns_(allowed_ns),
      processes_(processes),
      times_slower_(times_slower),
      window_began_ns_(now_ns()) {}

bool Allowance::used_up(const std::vector<pid_t>& processes) {
    std::uint64_t all_ns = 0;
    for (const pid_t process : processes) {
        clockid_t clock;
        timespec time{};
        if (clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &time) == 0) {
            computed_ns_[process] = static_cast<std::uint64_t>(time.tv_sec) * second_ns +
                                    static_cast<std::uint64_t>(time.tv_nsec);
        }
        all_ns += computed_ns_[process];
    }
    if (all_ns >= times_slower_ * allowed_ns_ * std::max(processes_, cores_least)) return true;

    const std::uint64_t waited_ns = now_ns() - window_began_ns_;
    if (waited_ns < 2 * allowed_ns_) return false;
    const bool idle = all_ns - window_computed_ns_ < processes_ * (waited_ns / idle_share);
    window_began_ns_ += waited_ns;
    window_computed_ns_ = all_ns;
    return idle;
}

}  // namespace hiroba::conformance
