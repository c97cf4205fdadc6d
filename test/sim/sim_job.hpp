// SPDX-License-Identifier: BSD-3-Clause
// Role: the job of simulated nodes under the name that tests know it by.
#pragma once

#include "net/provider/sim/sim_job.hpp"

namespace hiroba::sim_test {

using net::sim::outcome_name;
using net::sim::SimJob;

}  // namespace hiroba::sim_test
