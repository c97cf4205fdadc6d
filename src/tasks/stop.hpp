// SPDX-License-Identifier: BSD-3-Clause
// Role: how a process ends that uses tasks wrongly, or whose job cannot go on: one line, and abort.
#pragma once

namespace hiroba::tasks {

/// Sets the rank that lines begin with.
void set_rank(unsigned rank) noexcept;
/// Prints a line, printf format, and ends the process.
[[noreturn, gnu::format(printf, 1, 2)]] void stop(const char* format, ...) noexcept;
/// Prints a line.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) noexcept;

}  // namespace hiroba::tasks
