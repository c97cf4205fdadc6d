// SPDX-License-Identifier: BSD-3-Clause
// Role: GOMP_loop_* for variables of type long, and the regions that start inside a loop.
// Invariant: the modifiers monotonic and nonmonotonic change nothing: chunks are handed out in
// ascending order, which satisfies both.
#include <cstdarg>

#include "abi/gomp/loop_entry.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using hiroba::omp::OutlinedFunction;
using hiroba::omp::Schedule;

extern "C" {

#define HIROBA_LOOP(name, schedule, ordered)                                                     \
    bool GOMP_loop_##name##_start(long start, long end, long step, long chunk, long* first,      \
                                  long* last) {                                                  \
        note_caller();                                                                           \
        return start_loop(signed_loop(start, end, step, schedule, chunk, ordered), first, last); \
    }                                                                                            \
    bool GOMP_loop_##name##_next(long* first, long* last) { return next_chunk(first, last); }

#define HIROBA_LOOP_RUNTIME(name, ordered)                                                     \
    bool GOMP_loop_##name##_start(long start, long end, long step, long* first, long* last) {  \
        note_caller();                                                                         \
        return start_loop(signed_loop(start, end, step, Schedule::runtime, 0, ordered), first, \
                          last);                                                               \
    }                                                                                          \
    bool GOMP_loop_##name##_next(long* first, long* last) { return next_chunk(first, last); }

#include "abi/gomp/loop_names.inc"

bool GOMP_loop_start(long start, long end, long step, long schedule, long chunk, long* first,
                     long* last, std::uintptr_t* reductions, void** memory) {
    note_caller();
    return start_general(signed_loop(start, end, step, schedule_of(schedule), chunk), first, last,
                         reductions, memory);
}
bool GOMP_loop_ordered_start(long start, long end, long step, long schedule, long chunk,
                             long* first, long* last, std::uintptr_t* reductions, void** memory) {
    note_caller();
    return start_general(signed_loop(start, end, step, schedule_of(schedule), chunk, true), first,
                         last, reductions, memory);
}

#define HIROBA_DOACROSS(name, schedule)                                                   \
    bool GOMP_loop_doacross_##name##_start(unsigned dimensions, long* counts, long chunk, \
                                           long* first, long* last) {                     \
        note_caller();                                                                    \
        return start_doacross(dimensions, counts, schedule, chunk, first, last);          \
    }
HIROBA_DOACROSS(static, Schedule::static_chunks)
HIROBA_DOACROSS(dynamic, Schedule::dynamic)
HIROBA_DOACROSS(guided, Schedule::guided)
bool GOMP_loop_doacross_runtime_start(unsigned dimensions, long* counts, long* first, long* last) {
    note_caller();
    return start_doacross(dimensions, counts, Schedule::runtime, 0L, first, last);
}
bool GOMP_loop_doacross_start(unsigned dimensions, long* counts, long schedule, long chunk,
                              long* first, long* last, std::uintptr_t* reductions, void** memory) {
    note_caller();
    start_extras(reductions, memory);
    return start_doacross(dimensions, counts, schedule_of(schedule), chunk, first, last);
}
void GOMP_doacross_post(long* at) {
    note_caller();
    runtime().doacross_post(reinterpret_cast<std::uint64_t*>(at));
}
void GOMP_doacross_wait(long first, ...) {
    note_caller();
    va_list rest;
    va_start(rest, first);
    doacross_wait(first, rest);
    va_end(rest);
}

void GOMP_loop_end() {
    note_caller();
    synchronizes_at(SyncKind::loop, __builtin_return_address(0));
    runtime().loop_end(true);
}
void GOMP_loop_end_nowait() {
    note_caller();
    runtime().loop_end(false);
}
bool GOMP_loop_end_cancel() {
    note_caller();
    synchronizes_at(SyncKind::loop, __builtin_return_address(0));
    return runtime().loop_end_cancel();
}

void GOMP_ordered_start() {
    note_caller();
    runtime().ordered_start();
}
void GOMP_ordered_end() {
    note_caller();
    runtime().ordered_end();
}

#define HIROBA_PARALLEL_LOOP(name, schedule)                                                      \
    void GOMP_parallel_loop_##name(OutlinedFunction function, void* data, unsigned threads,       \
                                   long start, long end, long step, long chunk, unsigned flags) { \
        note_caller();                                                                            \
        read_flags(flags);                                                                        \
        runtime().parallel_loop(function, data, threads,                                          \
                                signed_loop(start, end, step, schedule, chunk), 0);               \
    }
#define HIROBA_PARALLEL_LOOP_RUNTIME(name)                                                  \
    void GOMP_parallel_loop_##name(OutlinedFunction function, void* data, unsigned threads, \
                                   long start, long end, long step, unsigned flags) {       \
        note_caller();                                                                      \
        read_flags(flags);                                                                  \
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
