// SPDX-License-Identifier: BSD-3-Clause
// Role: a node tells the launcher which other program it starts, which then runs outside of the
// job: a shell, or env, as the program is a common mistake.
#pragma once

#include "net/bootstrap/job.hpp"

namespace hiroba::net {

/// @param text      the program's path, or a shell's command; cut at 200 bytes; empty: nothing came
///                  of the last exec
/// @param replaces  it takes this process's place (exec)
/// Async-signal-safe; of one sender at a time, the last word counts.
void report_started(const JobInfo& job, const char* text, bool replaces) noexcept;

}  // namespace hiroba::net
