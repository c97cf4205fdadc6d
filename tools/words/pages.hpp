// SPDX-License-Identifier: BSD-3-Clause
// Role: manual pages and shell completion, made from the tables of words and of settings, so that
// they say what the command line says.
#pragma once

#include <string>
#include <vector>

#include "tools/words/command_words.hpp"

namespace hiroba::tools {

struct Page {
    std::string path;  ///< below share/, as "man/man1/hiroba.1"
    std::string text;
};

/// hiroba(1), a page of each command that is not hidden, hiroba-settings(7), and the completion of
/// bash and zsh.
std::vector<Page> make_pages(const CommandWords& whole, const std::vector<CommandWords>& commands,
                             const std::string& version);

/// Writes them below `folder`; returns the exit status.
int write_pages(const std::vector<Page>& pages, const std::string& folder);

}  // namespace hiroba::tools
