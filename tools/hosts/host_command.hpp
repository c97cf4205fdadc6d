// SPDX-License-Identifier: BSD-3-Clause
// Role: the command that runs an agent on another host: ssh, or what the user put in its place.
// Invariant: it has no terminal, so it cannot stop to ask for a password, and a Ctrl-C goes to the
// launcher alone. It dies with the launcher.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "tools/run/signals.hpp"

namespace hiroba::tools {

struct HostCommand {
    pid_t pid = -1;
    int input = -1;  ///< end of the pipe to its standard input; non-blocking
};

/// "ssh -T", "node7" -> {"ssh", "-T", "node7", "<this executable>", "agent"}. ssh joins the words
/// and gives them to a shell on the host, other commands do not, so none may need quoting.
/// Errors: usage when `command` is empty; environment when this executable's path needs quoting.
Result<std::vector<std::string>> agent_words(const std::string& command, const std::string& host,
                                             const std::string& hiroba);

/// The agent of this host: {"<this executable>", "agent"}.
Result<std::vector<std::string>> own_agent_words();

/// Starts it; output and errors go where the launcher's go. An environment error when it cannot be
/// executed.
Result<HostCommand> start_command(const std::vector<std::string>& words,
                                  const SignalWatch& signals);

}  // namespace hiroba::tools
