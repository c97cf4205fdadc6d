// SPDX-License-Identifier: BSD-3-Clause
// Role: what a recorded run would have to do on any machine: for each stretch between two meetings,
// and each thread, how long it computes, what it brings from which node, which locks it takes.
// Invariant: nothing in it is time that a thread waited for another one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/report/analysis.hpp"

namespace hiroba::tools {

/// What is asked of one node.
struct Asked {
    double exchanges = 0;  ///< a request and its answer, one behind the other
    double bytes = 0;
    bool operator==(const Asked&) const = default;
};

struct LockUse {
    double takes = 0, held_ns = 0;  ///< held_ns: all of them together
};

struct ThreadWork {
    double computing_ns = 0;
    double memory_ns = 0;  ///< of hiroba itself: faults, releases, acquires, without any wire
    std::map<std::uint32_t, Asked> of_node;
    std::map<std::uint64_t, LockUse> locks;  ///< by key
};

/// How a stretch ends.
enum class Meeting : std::uint8_t { fork, barrier, join };

struct Stretch {
    Phase phase = 0;
    Meeting end = Meeting::fork;
    std::vector<ThreadWork> threads;  ///< node by node
    bool serial() const { return is_serial(phase); }
};

struct WorkTable {
    std::uint32_t nodes = 1, threads = 1;  ///< threads: of each node
    std::uint32_t cores = 1;               ///< of the host it was recorded on
    std::uint32_t hosts = 1;
    std::vector<Stretch> stretches;
    /// What meetings themselves took there, undisturbed: forks, barriers, joins.
    std::array<double, 3> meeting_ns{};
    double measured_ns = 0;  ///< how long the program ran
    double scale = 1;        ///< the run is so many times what is in the table
    std::vector<std::string> notes;
};

struct WorkWishes {
    bool without_false_sharing = false;
};

/// Fails where the recording has nothing to go by.
Result<WorkTable> work_of(const Analysis& analysis, const WorkWishes& wishes);

/// How what moves between nodes grows with their number.
enum class Growth : std::uint8_t {
    divided,  ///< all nodes together bring as much as before: arrays that are shared out
    each,     ///< each node brings as much as before: edges, data that all read
};

/// The same work on `nodes` nodes of `threads` threads.
WorkTable spread_over(const WorkTable& table, std::uint32_t nodes, std::uint32_t threads,
                      Growth growth);

/// What one host would need whose threads share memory: no wire, and nothing of hiroba.
double on_one_host_ns(const WorkTable& table, std::uint32_t threads);

}  // namespace hiroba::tools
