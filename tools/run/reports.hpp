// SPDX-License-Identifier: BSD-3-Clause
// Role: what is said about a job before its start and after its end, wherever it ran.
#pragma once

#include "tools/run/control_server.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/race_report.hpp"

namespace hiroba::tools {

/// A line for each variable that looks like a setting and is none.
void warn_unknown_settings();

/// How many races to print, as HIROBA_RACE says.
RaceReport::Volume race_volume();

/// Hands races to `report`, which must outlive the sink.
ControlServer::RaceSink race_sink(RaceReport& report);

/// Looks the names of the program's files up while it lives, if counters are to be printed by
/// place; `report` must outlive the sink.
ControlServer::AttachSink attach_sink(RaceReport& report);

/// What is left to say about races, regions that stayed on node 0, and the counters as HIROBA_STATS
/// asks for them.
void sum_up(const RunPlan& plan, const ControlServer& control, RaceReport& races);

}  // namespace hiroba::tools
