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
    bool parks_consumer;  ///< only the measuring thread executes requests, when told to
    Result<void> (*prepare)(Rig& rig);  ///< registers handlers and memory; may be nullptr
    Measured (*measure)(Rig& rig);
    std::uint32_t nodes_min = 2;  ///< also without --nodes
};

std::span<const Test> all_tests();

/// What a dsm_release changes in each page: its first byte, all of it, the low byte of each double.
enum class Change : std::uint8_t { byte, page, doubles };
/// Where the home of the pages of a dsm_release is when it begins.
enum class Home : std::uint8_t { here, elsewhere };

struct PerfPlan {
    const Test* test = nullptr;
    std::uint32_t nodes = 2;
    std::uint32_t threads = 1;
    std::uint32_t executors = 1;  ///< threads that empty the command queues, each its own
    std::uint64_t bytes = 0;
    std::uint32_t repeat = 1;
    Change change = Change::byte;
    Home home = Home::here;
    std::uint64_t run_ns = 0;  ///< how long one repetition measures, about
};

/// Whether several executors can have a part in what `test` measures: it is made of requests.
bool takes_executors(const Test& test);

/// As the command line says them.
const char* name_of(Change change);
const char* name_of(Home home);

/// The whole number that `text` says for `option`; a usage error if it is none of `min` to `max`.
Result<std::uint64_t> number_option(const char* option, const std::string& text, std::uint64_t min,
                                    std::uint64_t max);

/// A usage error names the option that is wrong.
Result<PerfPlan> make_perf_plan(const PerfOptions& options);

}  // namespace hiroba::tools::perf_parts
