// SPDX-License-Identifier: BSD-3-Clause
// Role: the measurements that all_tests() names. Each is collective and checks its answers.
#pragma once

#include "tools/perf/rig.hpp"

namespace hiroba::tools::perf_parts {

using Measurement = Measured(Rig& rig);
using Preparation = Result<void>(Rig& rig);

// latency.cpp, busy.cpp, sleep.cpp, rates.cpp, reads.cpp
Measurement measure_put_latency, measure_get_latency, measure_busy_get_latency;
Measurement measure_atomic_latency, measure_am_latency, measure_sleep_latency;
Preparation prepare_am_latency, prepare_sleep_latency;
Measurement measure_enqueue, measure_stream;
Measurement measure_read_latency, measure_read_overhead, measure_read_rate, measure_overlap;

// collectives.cpp, idle.cpp, acp.cpp
Measurement measure_barrier, measure_all_reduce, measure_all_gather, measure_idle;
Measurement measure_acp_copy, measure_acp_copies, measure_acp_add8, measure_acp_sync;
Measurement measure_acp_third_party;
// acp_data.cpp
Measurement measure_acp_malloc, measure_acp_vector, measure_acp_list, measure_acp_map_insert;
Measurement measure_acp_map_find, measure_acp_channel;

// memory_faults.cpp, memory_sync.cpp
/// Makes the shared memory that all dsm_* tests measure (memory_rig.hpp).
Preparation prepare_memory;
/// The memory, attached at the first call. Collective.
class MemoryRig;
MemoryRig& prepared_memory();
/// The memory before it is attached, for a test that registers on top of it before the nodes meet.
MemoryRig& unattached_memory();
Measurement measure_dsm_read_miss, measure_dsm_write_miss, measure_dsm_busy_home;
Measurement measure_dsm_first_write, measure_dsm_release, measure_dsm_clean_barrier;
Measurement measure_dsm_ping_pong, measure_dsm_false_sharing, measure_dsm_lock_handover;

// regions.cpp
/// Also OpenMP's runtime over the memory.
Preparation prepare_regions;
Measurement measure_omp_fork_join, measure_omp_barrier, measure_omp_shared_local;

// relocation.cpp
/// Makes the relocatable space that all gas_* tests measure.
Preparation prepare_space;
Measurement measure_gas_get, measure_gas_put, measure_gas_start_get, measure_gas_get_miss;
Measurement measure_gas_own;

// kicks.cpp, windows.cpp
Preparation prepare_kicks, prepare_windows;
Measurement measure_kick_latency, measure_kick_barrier, measure_kick_tree, measure_kick_all_reduce;
Measurement measure_kick_sum_float, measure_kick_sum_ull, measure_kick_sum_unsigned;
Measurement measure_kick_store, measure_kick_resolve, measure_channel;
Measurement measure_window, measure_windows, measure_windows_both;

}  // namespace hiroba::tools::perf_parts
