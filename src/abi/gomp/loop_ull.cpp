// SPDX-License-Identifier: BSD-3-Clause
// Role: GOMP_loop_ull_* for variables of type unsigned long long.
// Invariant: as in loop.cpp; a downward loop's step is the two's complement of its distance.
#include <cstdarg>

#include "abi/gomp/loop_entry.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using hiroba::omp::Schedule;
using Ull = unsigned long long;

extern "C" {

#define HIROBA_LOOP(name, schedule, ordered)                                                    \
    bool GOMP_loop_ull_##name##_start(bool up, Ull start, Ull end, Ull step, Ull chunk,         \
                                      Ull* first, Ull* last) {                                  \
        note_caller();                                                                          \
        return start_loop(unsigned_loop(up, start, end, step, schedule, chunk, ordered), first, \
                          last);                                                                \
    }                                                                                           \
    bool GOMP_loop_ull_##name##_next(Ull* first, Ull* last) { return next_chunk(first, last); }

#define HIROBA_LOOP_RUNTIME(name, ordered)                                                    \
    bool GOMP_loop_ull_##name##_start(bool up, Ull start, Ull end, Ull step, Ull* first,      \
                                      Ull* last) {                                            \
        note_caller();                                                                        \
        return start_loop(unsigned_loop(up, start, end, step, Schedule::runtime, 0, ordered), \
                          first, last);                                                       \
    }                                                                                         \
    bool GOMP_loop_ull_##name##_next(Ull* first, Ull* last) { return next_chunk(first, last); }

#include "abi/gomp/loop_names.inc"

bool GOMP_loop_ull_start(bool up, Ull start, Ull end, Ull step, long schedule, Ull chunk,
                         Ull* first, Ull* last, std::uintptr_t* reductions, void** memory) {
    note_caller();
    return start_general(unsigned_loop(up, start, end, step, schedule_of(schedule), chunk), first,
                         last, reductions, memory);
}
bool GOMP_loop_ull_ordered_start(bool up, Ull start, Ull end, Ull step, long schedule, Ull chunk,
                                 Ull* first, Ull* last, std::uintptr_t* reductions, void** memory) {
    note_caller();
    return start_general(unsigned_loop(up, start, end, step, schedule_of(schedule), chunk, true),
                         first, last, reductions, memory);
}

#define HIROBA_DOACROSS(name, schedule)                                                     \
    bool GOMP_loop_ull_doacross_##name##_start(unsigned dimensions, Ull* counts, Ull chunk, \
                                               Ull* first, Ull* last) {                     \
        note_caller();                                                                      \
        return start_doacross(dimensions, counts, schedule, chunk, first, last);            \
    }
HIROBA_DOACROSS(static, Schedule::static_chunks)
HIROBA_DOACROSS(dynamic, Schedule::dynamic)
HIROBA_DOACROSS(guided, Schedule::guided)
bool GOMP_loop_ull_doacross_runtime_start(unsigned dimensions, Ull* counts, Ull* first, Ull* last) {
    note_caller();
    return start_doacross(dimensions, counts, Schedule::runtime, Ull{0}, first, last);
}
bool GOMP_loop_ull_doacross_start(unsigned dimensions, Ull* counts, long schedule, Ull chunk,
                                  Ull* first, Ull* last, std::uintptr_t* reductions,
                                  void** memory) {
    note_caller();
    start_extras(reductions, memory);
    return start_doacross(dimensions, counts, schedule_of(schedule), chunk, first, last);
}
void GOMP_doacross_ull_post(Ull* at) {
    note_caller();
    runtime().doacross_post(reinterpret_cast<std::uint64_t*>(at));
}
void GOMP_doacross_ull_wait(Ull first, ...) {
    note_caller();
    va_list rest;
    va_start(rest, first);
    doacross_wait(first, rest);
    va_end(rest);
}

}  // extern "C"
