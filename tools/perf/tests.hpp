// SPDX-License-Identifier: BSD-3-Clause
// Role: the measurements that all_tests() names. Each is collective and checks its answers.
#pragma once

#include "tools/perf/rig.hpp"

namespace hiroba::tools::perf_parts {

Measured measure_put_latency(Rig& rig);
Measured measure_get_latency(Rig& rig);
Measured measure_busy_get_latency(Rig& rig);
Measured measure_atomic_latency(Rig& rig);
void prepare_am_latency(Rig& rig);
Measured measure_am_latency(Rig& rig);
Measured measure_enqueue(Rig& rig);
Measured measure_stream(Rig& rig);
Measured measure_barrier(Rig& rig);
Measured measure_all_reduce(Rig& rig);
Measured measure_all_gather(Rig& rig);
Measured measure_acp_copy(Rig& rig);
Measured measure_acp_copies(Rig& rig);
Measured measure_acp_add8(Rig& rig);
Measured measure_acp_third_party(Rig& rig);

}  // namespace hiroba::tools::perf_parts
