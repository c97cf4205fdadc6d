// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba join`, the keeper of a process that another launcher has started and that calls a
// library of ours (src/net/bootstrap/keeper.hpp). Process 0's is the job's launcher, that of the
// first process on each other host its agent; the others end once their process has joined.
#pragma once

namespace hiroba::tools {

/// Serves the process at descriptor net::keeper_fd; returns the exit status.
int join();

}  // namespace hiroba::tools
