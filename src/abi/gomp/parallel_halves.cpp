// SPDX-License-Identifier: BSD-3-Clause
// Role: regions as gcc before 4.9 starts them: its code calls the region's function itself, between
// GOMP_parallel_start() and GOMP_parallel_end().
// Invariant: between the two the caller is the team's first thread.
#include "abi/gomp/loop_entry.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using hiroba::omp::Loop;
using hiroba::omp::OutlinedFunction;
using hiroba::omp::Schedule;

extern "C" {

void GOMP_parallel_start(OutlinedFunction function, void* data, unsigned threads) {
    synchronizes_at(SyncKind::region, reinterpret_cast<const void*>(function));
    runtime().begin_region(function, data, threads, nullptr, 0);
}
void GOMP_parallel_end() {
    synchronizes_at(SyncKind::end, __builtin_return_address(0));
    runtime().end_region();
}

#define HIROBA_PARALLEL_LOOP(name, schedule)                                                  \
    void GOMP_parallel_loop_##name##_start(OutlinedFunction function, void* data,             \
                                           unsigned threads, long start, long end, long step, \
                                           long chunk) {                                      \
        synchronizes_at(SyncKind::region, reinterpret_cast<const void*>(function));           \
        const Loop loop = signed_loop(start, end, step, schedule, chunk);                     \
        runtime().begin_region(function, data, threads, &loop, 0);                            \
    }
HIROBA_PARALLEL_LOOP(static, Schedule::static_chunks)
HIROBA_PARALLEL_LOOP(dynamic, Schedule::dynamic)
HIROBA_PARALLEL_LOOP(guided, Schedule::guided)
void GOMP_parallel_loop_runtime_start(OutlinedFunction function, void* data, unsigned threads,
                                      long start, long end, long step) {
    synchronizes_at(SyncKind::region, reinterpret_cast<const void*>(function));
    const Loop loop = signed_loop(start, end, step, Schedule::runtime, 0);
    runtime().begin_region(function, data, threads, &loop, 0);
}
void GOMP_parallel_sections_start(OutlinedFunction function, void* data, unsigned threads,
                                  unsigned count) {
    synchronizes_at(SyncKind::region, reinterpret_cast<const void*>(function));
    const Loop loop = sections_loop(count);
    runtime().begin_region(function, data, threads, &loop, count);
}

}  // extern "C"
