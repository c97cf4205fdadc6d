// SPDX-License-Identifier: BSD-3-Clause
// Role: the machine that a recorded run is replayed on: a wire of the table, one that the user
// describes, or a platform in SimGrid's format; and what the user wants changed of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/predict/work.hpp"

namespace hiroba::tools {

struct Wire {
    std::string name;
    double latency_us = 0;       ///< one way
    double gigabytes_s = 1;      ///< of each host's link, each way
    double message_us = 0;       ///< of a processor's time, at either end of each message
    bool shared_memory = false;  ///< all nodes are on one host
};

/// The table of wires: what they usually are, not measured here.
const std::vector<Wire>& wires();

/// One of the table, or "LATENCYus,BANDWIDTHGB/s,MESSAGEus".
Result<Wire> wire_of(const std::string& text);

/// What the user wants changed, each a factor.
struct Changes {
    double latency = 1, bandwidth = 1, message = 1, computing = 1, misses = 1, bytes = 1, locks = 1;
    std::uint32_t threads = 0;  ///< of each node; 0: as recorded
    bool without_false_sharing = false;
};

/// Reads "latency/2,bandwidth*4,threads=8,no-false-sharing".
Result<Changes> changes_of(const std::string& text);

void change(Wire& wire, const Changes& changes);
void change(WorkTable& table, const Changes& changes);

/// Numbers of nodes, as "2,4,8".
Result<std::vector<std::uint32_t>> node_counts(const std::string& text);

}  // namespace hiroba::tools
