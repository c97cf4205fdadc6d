// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba exec`: one process of a job that another launcher has started, as in
// `mpirun -n 4 hiroba exec ./a.out`. Process 0 does what `hiroba run` does, the first process on
// each other host is its agent, and the rest wait until the job is over: the nodes are children of
// the agents, on the processors that the launcher gave to the processes they stand for.
#pragma once

#include "tools/run/run.hpp"

namespace hiroba::tools {

/// Takes part in the job; returns the command's exit status: process 0's is the program's.
/// Of `options`, nodes, hosts and ssh are not looked at.
int exec(const RunOptions& options);

}  // namespace hiroba::tools
