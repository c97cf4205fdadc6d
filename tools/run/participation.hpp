// SPDX-License-Identifier: BSD-3-Clause
// Role: what a user would otherwise not see: a job of several nodes that worked on one.
// Invariant: at most one line before a job, and one after it; none where every node took part.
#pragma once

#include "tools/run/control_server.hpp"
#include "tools/run/plan.hpp"

namespace hiroba::tools {

/// Before the start: constructs the program asks for that end it when they are reached.
void tell_refused_constructs(const RunPlan& plan);

/// After the end with status 0: nodes that ran no parallel region, and why; a program that ran
/// outside of the job; copies of an OpenMP program.
void tell_idle_nodes(const RunPlan& plan, const ControlServer& control);

}  // namespace hiroba::tools
