// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba agent`: stands in for the launcher on one host. It starts the host's nodes as the
// launcher starts its own, passes their control packets on, and tells of their ends.
// Invariant: its nodes live no longer than it (PR_SET_PDEATHSIG), and it no longer than its
// connection to the launcher. A node's packets are passed on before its end is told.
#pragma once

#include "tools/hosts/startup_packet.hpp"

namespace hiroba::tools {

/// Reads its start-up packet from standard input and serves until the launcher lets it go; returns
/// the exit status of the command.
int agent();

/// The same with a start-up packet of one's own: for a process that another launcher has started on
/// this host.
int agent(StartupPacket packet);

}  // namespace hiroba::tools
