// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba gdb`: attaches gdb to a node of a job.
#pragma once

#include <string>

#include "tools/words/command_words.hpp"

namespace hiroba::tools {

struct DebuggerOptions {
    std::string rank, job;
    std::string execute;  ///< a command of gdb; empty: a person gives them
};

CommandWords debugger_words(DebuggerOptions& options);

/// Becomes gdb. Returns the exit status where it does not come to that.
int debug_node(const DebuggerOptions& options);

}  // namespace hiroba::tools
