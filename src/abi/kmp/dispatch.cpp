// SPDX-License-Identifier: BSD-3-Clause
// Role: loops that are handed out chunk by chunk.
// Invariant: a 0 ends the loop for the calling thread. What follows is the order of calls:
// init, next until it returns 0; fini, behind each iteration of ordered loops, changes nothing.
#include "abi/kmp/nests.hpp"
#include "abi/kmp/static_loop.hpp"
#include "abi/kmp/thread_notes.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;
using hiroba::omp::Loop;
using hiroba::omp::LoopChunk;

namespace {

template <class T>
using Signed = std::make_signed_t<T>;

hiroba::omp::Schedule schedule_for(Sched kind) noexcept {
    using hiroba::omp::Schedule;
    switch (kind) {
        case Sched::dynamic:
        case Sched::static_steal: return Schedule::dynamic;
        case Sched::guided:
        case Sched::guided_iterative:
        case Sched::guided_analytical:
        case Sched::guided_simd:
        case Sched::trapezoidal: return Schedule::guided;
        case Sched::runtime:
        case Sched::runtime_simd: return Schedule::runtime;
        case Sched::automatic: return Schedule::automatic;
        default: return Schedule::static_chunks;
    }
}

bool has_chunk(Sched kind) noexcept {
    return kind == Sched::static_chunked || kind == Sched::distribute_chunked ||
           schedule_for(kind) == hiroba::omp::Schedule::dynamic ||
           schedule_for(kind) == hiroba::omp::Schedule::guided;
}

/// A value of the loop variable as 64 bits.
template <class T>
UnsignedLong widened(T value) noexcept {
    if constexpr (std::is_signed_v<T>)
        return static_cast<UnsignedLong>(Long{value});
    else
        return value;
}

template <class T>
void start(Int number, T lower, T upper, Signed<T> step, Signed<T> chunk) {
    const ::hiroba::abi::kmp::Schedule schedule = schedule_of(number);
    Loop loop;
    loop.up = step > 0;
    loop.start = widened(lower);
    loop.end = widened(upper);
    loop.step = widened(step);
    loop.is_unsigned = std::is_unsigned_v<T>;
    loop.closed = true;
    loop.schedule = schedule_for(schedule.kind);
    loop.chunk = has_chunk(schedule.kind) && chunk > 0 ? static_cast<UnsignedLong>(chunk) : 0;
    loop.ordered = schedule.ordered;
    ++notes().open_loops;
    if (!start_dealt_nest(loop, trip_count(lower, upper, step))) runtime().loop_start(loop);
}

template <class T>
int next(Int* is_last, T* lower, T* upper, Signed<T>* stride) {
    LoopChunk chunk;
    if (!runtime().loop_next_closed(&chunk)) {
        leave_dealt_loop();
        return 0;
    }
    convert_if_nest(&chunk);
    if (is_last != nullptr) *is_last = chunk.ends_loop;
    *lower = static_cast<T>(chunk.first);
    *upper = static_cast<T>(chunk.last);
    if (stride != nullptr) *stride = static_cast<Signed<T>>(chunk.step);
    return 1;
}

/// distribute parallel for: the team's part of it.
template <class T>
void start_in_team(Int number, Int* is_last, T lower, T upper, Signed<T> step, Signed<T> chunk) {
    const hiroba::omp::Icvs& own = runtime().icvs();
    const StaticShare<T> team = team_share(lower, upper, step, {own.team_number, own.league_size});
    if (is_last != nullptr) *is_last = team.has_last;
    start(number, team.lower, team.upper, step, chunk);
}

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-macro-parentheses): `T` is a type.
#define HIROBA_DISPATCH(suffix, T)                                                               \
    void __kmpc_dispatch_init_##suffix(Location*, Int, Int schedule, T lower, T upper,           \
                                       Signed<T> step, Signed<T> chunk) {                        \
        note_caller();                                                                           \
        start(schedule, lower, upper, step, chunk);                                              \
    }                                                                                            \
    void __kmpc_dist_dispatch_init_##suffix(Location*, Int, Int schedule, Int* is_last, T lower, \
                                            T upper, Signed<T> step, Signed<T> chunk) {          \
        start_in_team(schedule, is_last, lower, upper, step, chunk);                             \
    }                                                                                            \
    int __kmpc_dispatch_next_##suffix(Location*, Int, Int* is_last, T* lower, T* upper,          \
                                      Signed<T>* stride) {                                       \
        return next(is_last, lower, upper, stride);                                              \
    }                                                                                            \
    void __kmpc_dispatch_fini_##suffix(Location*, Int) {}
// NOLINTEND(bugprone-macro-parentheses)

HIROBA_DISPATCH(4, Int)
HIROBA_DISPATCH(4u, Unsigned)
HIROBA_DISPATCH(8, Long)
HIROBA_DISPATCH(8u, UnsignedLong)

void __kmpc_dispatch_deinit(Location*, Int) {}

}  // extern "C"
