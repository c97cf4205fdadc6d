// SPDX-License-Identifier: BSD-3-Clause
// Role: the job that this process takes part in, whoever has started it: `hiroba run`, or another
// launcher, whose processes then make a job of ours by themselves.
// Invariant: a process that a launcher has started as one of several never goes on as a job of one
// node: it joins, or ends with status 78.
#pragma once

#include "net/bootstrap/job.hpp"

namespace hiroba::net {

/// As read_job_info(); where there is no `hiroba run`, but a launcher of others with several
/// processes, joins them. Collective then: blocks until each of them has called it. Every call
/// gives the same. Ends the process, after one line of the first of them, when they cannot join.
///
/// Such a process stays, at its exit, until the job is over if others of the job need its keeper.
/// Thread: one at a time.
Result<JobInfo> join_job_info();

}  // namespace hiroba::net
