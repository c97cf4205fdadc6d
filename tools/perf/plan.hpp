// SPDX-License-Identifier: BSD-3-Clause
// Role: what one `hiroba perf` measures: the tests there are, and the checked options.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "tools/perf/perf.hpp"
#include "tools/perf/samples.hpp"

namespace hiroba::tools::perf_parts {

class Rig;

/// One test. Collective: every node calls `measure`, which returns what this node saw.
struct Test {
    const char* name;
    const char* asks;
    const char* floor;
    std::uint64_t bytes;      ///< without --bytes
    std::uint64_t bytes_max;  ///< 0: has no size
    bool takes_threads;
    bool parks_consumer;  ///< nobody executes requests but the measuring thread, when it says so
    void (*prepare)(Rig& rig);  ///< registers handlers; may be nullptr
    Measured (*measure)(Rig& rig);
    std::uint32_t nodes_min = 2;  ///< also without --nodes
};

std::span<const Test> all_tests();

struct PerfPlan {
    const Test* test = nullptr;
    std::uint32_t nodes = 2;
    std::uint32_t threads = 1;
    std::uint64_t bytes = 0;
    std::uint32_t repeat = 1;
    std::uint64_t run_ns = 0;  ///< how long one repetition measures, about
};

/// A usage error names the option that is wrong.
Result<PerfPlan> make_perf_plan(const PerfOptions& options);

}  // namespace hiroba::tools::perf_parts
