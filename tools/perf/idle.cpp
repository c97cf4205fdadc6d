// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node costs that has nothing to do: one thread waits, the service thread sleeps.
#include <sys/resource.h>

#include "base/clock.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr double second_ns = 1e9;

double cpu_ns() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto ns = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * second_ns +
               static_cast<double>(time.tv_usec) * 1e3;
    };
    return ns(usage.ru_utime) + ns(usage.ru_stime);
}

}  // namespace

Measured measure_idle(Rig& rig) {
    Measured measured;
    rig.collectives().barrier();
    const std::uint64_t begun_ns = now_ns();
    const double cpu_begun_ns = cpu_ns();
    rig.endpoint().wait_until([&] { return now_ns() - begun_ns >= rig.plan().run_ns; });
    const auto wall_ns = static_cast<double>(now_ns() - begun_ns);
    // The node that took most counts.
    measured.test.push_back(rig.longest((cpu_ns() - cpu_begun_ns) / wall_ns * second_ns));
    measured.floor.push_back(second_ns / 100);
    measured.verified = wall_ns >= static_cast<double>(rig.plan().run_ns);
    return measured;
}

}  // namespace hiroba::tools::perf_parts
