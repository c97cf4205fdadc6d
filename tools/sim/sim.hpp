// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba sim`: runs a program on hiroba/net.hpp or kick.hpp on simulated nodes, which are
// threads of one process, once for each seed.
// Invariant: equal words give equal runs, so the line that a failed run ends with repeats it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/words/command_words.hpp"

namespace hiroba::tools {

/// The command line's words.
struct SimOptions {
    std::string nodes;
    std::string seed = "1", seeds = "1";
    std::string loss = "0", duplicate = "0", reorder = "0";
    std::string limit = "1000", busy = "60";
    std::vector<std::string> command = {};  ///< the program and its arguments
};

CommandWords sim_words(SimOptions& options);

/// Runs the program; returns the exit status: of the first seed whose run failed, or 0.
int sim(const SimOptions& options);

}  // namespace hiroba::tools
