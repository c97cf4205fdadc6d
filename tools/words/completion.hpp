// SPDX-License-Identifier: BSD-3-Clause
// Role: completion of the command line for shells, from the tables of words.
#pragma once

#include <string>
#include <vector>

#include "tools/words/command_words.hpp"

namespace hiroba::tools {

/// Source text that bash-completion loads for `hiroba`.
std::string bash_completion(const std::vector<CommandWords>& commands);

/// The function _hiroba of zsh.
std::string zsh_completion(const std::vector<CommandWords>& commands);

}  // namespace hiroba::tools
