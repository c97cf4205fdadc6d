// SPDX-License-Identifier: BSD-3-Clause
// Role: GOMP_loop_* for variables of type long, and the regions that start inside a loop.
// Invariant: the modifiers monotonic and nonmonotonic change nothing: chunks are handed out in
// ascending order, which satisfies both.
#include "abi/gomp/loop_entry.hpp"
#include "base/sync_place.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using hiroba::synchronizes_at;
using hiroba::SyncKind;
using hiroba::omp::OutlinedFunction;
using hiroba::omp::Schedule;

namespace {

bool start_general(const char* name, const hiroba::omp::Loop& loop, long* first, long* end,
                   const void* reductions, const void* memory) noexcept {
    if (reductions != nullptr) refuse(name, "task reductions on loops are");
    if (memory != nullptr) refuse(name, "scan and conditional lastprivate on loops are");
    runtime().loop_start(loop);
    return first == nullptr || next_chunk(first, end);
}

}  // namespace

extern "C" {

#define HIROBA_LOOP(name, schedule, ordered)                                                     \
    bool GOMP_loop_##name##_start(long start, long end, long step, long chunk, long* first,      \
                                  long* last) {                                                  \
        return start_loop(signed_loop(start, end, step, schedule, chunk, ordered), first, last); \
    }                                                                                            \
    bool GOMP_loop_##name##_next(long* first, long* last) { return next_chunk(first, last); }

#define HIROBA_LOOP_RUNTIME(name, ordered)                                                     \
    bool GOMP_loop_##name##_start(long start, long end, long step, long* first, long* last) {  \
        return start_loop(signed_loop(start, end, step, Schedule::runtime, 0, ordered), first, \
                          last);                                                               \
    }                                                                                          \
    bool GOMP_loop_##name##_next(long* first, long* last) { return next_chunk(first, last); }

HIROBA_LOOP(static, Schedule::static_chunks, false)
HIROBA_LOOP(dynamic, Schedule::dynamic, false)
HIROBA_LOOP(guided, Schedule::guided, false)
HIROBA_LOOP(nonmonotonic_dynamic, Schedule::dynamic, false)
HIROBA_LOOP(nonmonotonic_guided, Schedule::guided, false)
HIROBA_LOOP(ordered_static, Schedule::static_chunks, true)
HIROBA_LOOP(ordered_dynamic, Schedule::dynamic, true)
HIROBA_LOOP(ordered_guided, Schedule::guided, true)
HIROBA_LOOP_RUNTIME(runtime, false)
HIROBA_LOOP_RUNTIME(nonmonotonic_runtime, false)
HIROBA_LOOP_RUNTIME(maybe_nonmonotonic_runtime, false)
HIROBA_LOOP_RUNTIME(ordered_runtime, true)

bool GOMP_loop_start(long start, long end, long step, long schedule, long chunk, long* first,
                     long* last, std::uintptr_t* reductions, void** memory) {
    return start_general("GOMP_loop_start",
                         signed_loop(start, end, step, schedule_of(schedule), chunk), first, last,
                         reductions, memory);
}
bool GOMP_loop_ordered_start(long start, long end, long step, long schedule, long chunk,
                             long* first, long* last, std::uintptr_t* reductions, void** memory) {
    return start_general("GOMP_loop_ordered_start",
                         signed_loop(start, end, step, schedule_of(schedule), chunk, true), first,
                         last, reductions, memory);
}

void GOMP_loop_end() {
    synchronizes_at(SyncKind::loop, __builtin_return_address(0));
    runtime().loop_end(true);
}
void GOMP_loop_end_nowait() { runtime().loop_end(false); }
bool GOMP_loop_end_cancel() {
    synchronizes_at(SyncKind::loop, __builtin_return_address(0));
    runtime().loop_end(true);
    return false;
}

void GOMP_ordered_start() { runtime().ordered_start(); }
void GOMP_ordered_end() { runtime().ordered_end(); }

#define HIROBA_PARALLEL_LOOP(name, schedule)                                                \
    void GOMP_parallel_loop_##name(OutlinedFunction function, void* data, unsigned threads, \
                                   long start, long end, long step, long chunk, unsigned) { \
        runtime().parallel_loop(function, data, threads,                                    \
                                signed_loop(start, end, step, schedule, chunk), 0);         \
    }
#define HIROBA_PARALLEL_LOOP_RUNTIME(name)                                                  \
    void GOMP_parallel_loop_##name(OutlinedFunction function, void* data, unsigned threads, \
                                   long start, long end, long step, unsigned) {             \
        runtime().parallel_loop(function, data, threads,                                    \
                                signed_loop(start, end, step, Schedule::runtime, 0), 0);    \
    }

HIROBA_PARALLEL_LOOP(static, Schedule::static_chunks)
HIROBA_PARALLEL_LOOP(dynamic, Schedule::dynamic)
HIROBA_PARALLEL_LOOP(guided, Schedule::guided)
HIROBA_PARALLEL_LOOP(nonmonotonic_dynamic, Schedule::dynamic)
HIROBA_PARALLEL_LOOP(nonmonotonic_guided, Schedule::guided)
HIROBA_PARALLEL_LOOP_RUNTIME(runtime)
HIROBA_PARALLEL_LOOP_RUNTIME(nonmonotonic_runtime)
HIROBA_PARALLEL_LOOP_RUNTIME(maybe_nonmonotonic_runtime)

}  // extern "C"
