// SPDX-License-Identifier: BSD-3-Clause
// Role: the measurements that all_tests() names. Each is collective and checks its answers.
#pragma once

#include "tools/perf/rig.hpp"

namespace hiroba::tools::perf_parts {

Measured measure_put_latency(Rig& rig);
Measured measure_get_latency(Rig& rig);
Measured measure_busy_get_latency(Rig& rig);
Measured measure_atomic_latency(Rig& rig);
Result<void> prepare_am_latency(Rig& rig);
Measured measure_am_latency(Rig& rig);
Result<void> prepare_sleep_latency(Rig& rig);
Measured measure_sleep_latency(Rig& rig);
Measured measure_enqueue(Rig& rig);
Measured measure_stream(Rig& rig);
Measured measure_read_latency(Rig& rig);
Measured measure_read_overhead(Rig& rig);
Measured measure_read_rate(Rig& rig);
Measured measure_overlap(Rig& rig);
Measured measure_barrier(Rig& rig);
Measured measure_all_reduce(Rig& rig);
Measured measure_all_gather(Rig& rig);
Measured measure_idle(Rig& rig);
Measured measure_acp_copy(Rig& rig);
Measured measure_acp_copies(Rig& rig);
Measured measure_acp_add8(Rig& rig);
Measured measure_acp_sync(Rig& rig);
Measured measure_acp_third_party(Rig& rig);

/// Makes the shared memory that all dsm_* tests measure (memory_rig.hpp).
Result<void> prepare_memory(Rig& rig);
/// The memory, attached at the first call. Collective.
class MemoryRig;
MemoryRig& prepared_memory();
/// The memory before it is attached, for a test that registers on top of it before the nodes meet.
MemoryRig& unattached_memory();

Measured measure_dsm_read_miss(Rig& rig);
Measured measure_dsm_write_miss(Rig& rig);
Measured measure_dsm_busy_home(Rig& rig);
Measured measure_dsm_first_write(Rig& rig);
Measured measure_dsm_release(Rig& rig);
Measured measure_dsm_clean_barrier(Rig& rig);
Measured measure_dsm_ping_pong(Rig& rig);
Measured measure_dsm_false_sharing(Rig& rig);
Measured measure_dsm_lock_handover(Rig& rig);
/// Also OpenMP's runtime over it (regions.cpp).
Result<void> prepare_regions(Rig& rig);
Measured measure_omp_fork_join(Rig& rig);
Measured measure_omp_barrier(Rig& rig);
Measured measure_omp_shared_local(Rig& rig);
/// Makes the relocatable space that all gas_* tests measure.
Result<void> prepare_space(Rig& rig);
Measured measure_gas_get(Rig& rig);
Measured measure_gas_put(Rig& rig);
Measured measure_gas_start_get(Rig& rig);
Measured measure_gas_get_miss(Rig& rig);
Measured measure_gas_own(Rig& rig);
Result<void> prepare_kicks(Rig& rig);
Measured measure_kick_latency(Rig& rig);
Measured measure_kick_barrier(Rig& rig);
Measured measure_kick_tree(Rig& rig);
Measured measure_kick_all_reduce(Rig& rig);
Measured measure_channel(Rig& rig);
Measured measure_kick_sum_float(Rig& rig);
Measured measure_kick_sum_ull(Rig& rig);
Measured measure_kick_sum_unsigned(Rig& rig);
Measured measure_kick_store(Rig& rig);
Measured measure_kick_resolve(Rig& rig);
Measured measure_window(Rig& rig);
Result<void> prepare_windows(Rig& rig);
Measured measure_windows(Rig& rig);
Measured measure_windows_both(Rig& rig);

}  // namespace hiroba::tools::perf_parts
