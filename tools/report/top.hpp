// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba top`: what each thread of a job does that is being recorded.
#pragma once

#include <string>

#include "tools/report/recording.hpp"

namespace hiroba::tools {

struct TopOptions {
    std::string job;       ///< file, or number of a launcher; empty: the only one there is
    std::string interval;  ///< seconds between two looks; empty: one
    bool once = false;
};

/// Prints a table, and renews it until the job ends. Returns the exit status.
int show_top(const TopOptions& options);

/// The table. Reads what is recorded up to `now_ns` after the program's beginning.
std::string top_text(const Recording& recording, std::int64_t now_ns);

}  // namespace hiroba::tools
