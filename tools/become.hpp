// SPDX-License-Identifier: BSD-3-Clause
// Role: one command of hiroba becomes another one.
#pragma once

#include <string>
#include <vector>

namespace hiroba::tools {

/// What execv() takes: the words, which must outlive it, and a null pointer.
std::vector<char*> pointers_to(const std::vector<std::string>& words);

/// Executes words[0], a path, with `words` in place of this process.
/// @return only if that failed: the exit status, after a line that says why
int become(const std::vector<std::string>& words);

/// The file `name` in the folder of this program; the bare name if /proc cannot be read.
std::string beside_this_program(const std::string& name);

}  // namespace hiroba::tools
