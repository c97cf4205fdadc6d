// SPDX-License-Identifier: BSD-3-Clause
// Role: a measurement's work on several threads of a node, under one clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "tools/perf/rig.hpp"

namespace hiroba::tools::perf_parts {

/// Runs `work(thread)` on the plan's threads at once; returns the nanoseconds from their common
/// start until the last has ended. One clock: a thread that waits for a core is part of it.
template <class Work>
double on_threads(const Rig& rig, Work&& work) {
    const std::uint32_t count = rig.plan().threads;
    std::atomic<std::uint32_t> ready{0}, ended{0};
    std::atomic<bool> begun{false};
    const auto run = [&](std::uint32_t thread) {
        ready.fetch_add(1);
        rig.spin_until([&] { return begun.load(); });
        work(thread);
        ended.fetch_add(1);
    };
    std::vector<std::thread> others;
    for (std::uint32_t thread = 1; thread < count; ++thread) others.emplace_back(run, thread);
    rig.spin_until([&] { return ready.load() == count - 1; });
    const std::uint64_t begun_ns = now_ns();
    begun.store(true);
    work(0);
    rig.spin_until([&] { return ended.load() == count - 1; });
    const std::uint64_t spent_ns = now_ns() - begun_ns;
    for (std::thread& other : others) other.join();
    return static_cast<double>(spent_ns);
}

}  // namespace hiroba::tools::perf_parts
