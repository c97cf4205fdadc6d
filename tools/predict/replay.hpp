// SPDX-License-Identifier: BSD-3-Clause
// Role: one replay of recorded work on a machine, and what it took. What carries it out
// (simgrid/replay.cpp) is in hiroba-predict alone.
#pragma once

#include <string>

#include "base/result.hpp"
#include "tools/predict/machine_model.hpp"
#include "tools/predict/work.hpp"

namespace hiroba::tools {

/// What a run's time goes into, followed from meeting to meeting by the thread that came last.
struct Limits {
    double computing = 0;  ///< of threads in the mean, in regions
    double imbalance = 0;  ///< what the slowest has more
    double serial = 0;     ///< what the first thread computes alone
    double memory = 0;     ///< of hiroba itself
    double latency = 0;    ///< of misses and locks
    double messages = 0;   ///< processors' time for sending and serving
    double bytes = 0;      ///< on links, and queueing for them
    double locks = 0;      ///< until others let go
    double cores = 0;      ///< waiting for a core
    double meetings = 0;   ///< regions and barriers themselves
};

struct Replayed {
    double ns = 0;
    Limits limits;
};

struct ReplayMachine {
    Wire wire;
    std::string platform;  ///< file; empty: a switch with `wire` to each node
};

/// In a process of its own: SimGrid may end it.
Result<Replayed> replay(const WorkTable& table, const ReplayMachine& machine);

}  // namespace hiroba::tools
