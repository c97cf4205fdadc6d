// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba run --progress`: a line now and then that says how far a program has come whose
// regions or barriers repeat, from what node 0 has recorded.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "tools/report/recording.hpp"

namespace hiroba::tools {

/// Seconds between two lines, as the user writes them: 0.1 to 3600.
Result<std::uint64_t> progress_interval_ns(const std::string& text);

/// Has the job recorded for the lines alone, where it is not recorded anyhow: into a file that
/// remove_progress_file() removes. Before the job.
void record_for_progress();
void remove_progress_file();

/// The line; empty: nothing is known yet. What repeats is the step that the program makes: of the
/// places where the first thread has met the others lately more than once, the rarest.
std::string progress_text(const Recording& recording, std::int64_t now_ns);

/// The same of what the job has recorded so far.
std::string progress_now();

}  // namespace hiroba::tools
