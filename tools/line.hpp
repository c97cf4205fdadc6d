// SPDX-License-Identifier: BSD-3-Clause
// Role: the lines this command says to its user: "hiroba: what failed: numbers. What to change."
#pragma once

#include <string_view>

namespace hiroba {
struct Error;
}

namespace hiroba::tools {

/// Writes "hiroba: `text`." as one line to stderr, in one write, so that lines of nodes do not mix.
void say_line(std::string_view text);

/// Writes the error's line and returns the exit status that belongs to its kind.
int report(const Error& error);

/// The exit status that belongs to the error's kind.
int status_of(const Error& error);

}  // namespace hiroba::tools
