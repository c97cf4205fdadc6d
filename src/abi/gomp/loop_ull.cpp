// SPDX-License-Identifier: BSD-3-Clause
// Role: GOMP_loop_ull_* for variables of type unsigned long long.
// Invariant: as in loop.cpp; a downward loop's step is the two's complement of its distance.
#include "abi/gomp/loop_entry.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using hiroba::omp::Schedule;
using Ull = unsigned long long;

namespace {

bool start_general(const char* name, const hiroba::omp::Loop& loop, Ull* first, Ull* end,
                   const void* reductions, const void* memory) noexcept {
    if (reductions != nullptr) refuse(name, "task reductions on loops are");
    if (memory != nullptr) refuse(name, "scan and conditional lastprivate on loops are");
    runtime().loop_start(loop);
    return first == nullptr || next_chunk(first, end);
}

}  // namespace

extern "C" {

#define HIROBA_LOOP(name, schedule, ordered)                                                    \
    bool GOMP_loop_ull_##name##_start(bool up, Ull start, Ull end, Ull step, Ull chunk,         \
                                      Ull* first, Ull* last) {                                  \
        return start_loop(unsigned_loop(up, start, end, step, schedule, chunk, ordered), first, \
                          last);                                                                \
    }                                                                                           \
    bool GOMP_loop_ull_##name##_next(Ull* first, Ull* last) { return next_chunk(first, last); }

#define HIROBA_LOOP_RUNTIME(name, ordered)                                                    \
    bool GOMP_loop_ull_##name##_start(bool up, Ull start, Ull end, Ull step, Ull* first,      \
                                      Ull* last) {                                            \
        return start_loop(unsigned_loop(up, start, end, step, Schedule::runtime, 0, ordered), \
                          first, last);                                                       \
    }                                                                                         \
    bool GOMP_loop_ull_##name##_next(Ull* first, Ull* last) { return next_chunk(first, last); }

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

bool GOMP_loop_ull_start(bool up, Ull start, Ull end, Ull step, long schedule, Ull chunk,
                         Ull* first, Ull* last, std::uintptr_t* reductions, void** memory) {
    return start_general("GOMP_loop_ull_start",
                         unsigned_loop(up, start, end, step, schedule_of(schedule), chunk), first,
                         last, reductions, memory);
}
bool GOMP_loop_ull_ordered_start(bool up, Ull start, Ull end, Ull step, long schedule, Ull chunk,
                                 Ull* first, Ull* last, std::uintptr_t* reductions, void** memory) {
    return start_general("GOMP_loop_ull_ordered_start",
                         unsigned_loop(up, start, end, step, schedule_of(schedule), chunk, true),
                         first, last, reductions, memory);
}

}  // extern "C"
