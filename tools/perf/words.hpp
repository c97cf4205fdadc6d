// SPDX-License-Identifier: BSD-3-Clause
// Role: the words of `hiroba perf`, for the program that measures and for the pages about it.
#pragma once

#include "tools/perf/perf.hpp"
#include "tools/words/command_words.hpp"

namespace hiroba::tools {

/// @param name  the command as its help calls it
CommandWords perf_words(const char* name, PerfOptions& options);

}  // namespace hiroba::tools
