// SPDX-License-Identifier: BSD-3-Clause
// Role: loops whose code cuts them by itself: schedule(static), distribute, and both at once.
// Invariant: nothing is shared between threads; where they stand decides.
#include "abi/kmp/nests.hpp"
#include "abi/kmp/static_loop.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

namespace {

Member thread_of_team() noexcept {
    const hiroba::omp::TeamPosition place = runtime().place();
    return {place.thread, place.team_size};
}
Member team_of_league() noexcept {
    const hiroba::omp::Icvs& own = runtime().icvs();
    return {own.team_number, own.league_size};
}

template <class T>
using Signed = std::make_signed_t<T>;

template <class T>
void tell_of_loop(const Location* at, Int number, T lower, T upper, Signed<T> step) noexcept {
    if (!hiroba::omp::tool_listens()) [[likely]]
        return;
    const Sched kind = schedule_of(number).kind;
    const bool distributes = kind == Sched::distribute_chunked || kind == Sched::distribute_blocks;
    const bool sections = at != nullptr && (at->flags & location_flag::sections) != 0;
    tell_tool(distributes ? ToolReport::distribute_begins
              : sections  ? ToolReport::sections_begin
                          : ToolReport::loop_begins,
              trip_count(lower, upper, step));
}

template <class T>
void hand_out(const StaticShare<T>& share, Int* is_last, T* lower, T* upper, Signed<T>* stride) {
    if (is_last != nullptr) *is_last = share.has_last;
    *lower = share.lower;
    *upper = share.upper;
    if (stride != nullptr) *stride = share.stride;
}

template <class T>
void start(Int number, Int* is_last, T* lower, T* upper, Signed<T>* stride, Signed<T> step,
           Signed<T> chunk) {
    const Sched kind = schedule_of(number).kind;
    const bool distributes = kind == Sched::distribute_chunked || kind == Sched::distribute_blocks;
    const bool chunked = kind == Sched::static_chunked;
    if (!distributes)
        start_static_nest(trip_count(*lower, *upper, step),
                          chunked ? static_cast<UnsignedLong>(std::max<Signed<T>>(chunk, 1)) : 0);
    hand_out(static_share(kind, *lower, *upper, step, chunk,
                          distributes ? team_of_league() : thread_of_team()),
             is_last, lower, upper, stride);
}

/// distribute parallel for: the team's bounds, and in them the thread's. `team_upper` is where the
/// team's end.
template <class T>
void start_both(Int number, Int* is_last, T* lower, T* upper, T* team_upper, Signed<T>* stride,
                Signed<T> step, Signed<T> chunk) {
    const StaticShare<T> team = team_share(*lower, *upper, step, team_of_league());
    StaticShare<T> own = static_share(schedule_of(number).kind, team.lower, team.upper, step, chunk,
                                      thread_of_team());
    own.has_last = own.has_last && team.has_last;
    *team_upper = team.upper;
    hand_out(own, is_last, lower, upper, stride);
}

/// distribute with chunks: the team's first, and how far on its next one is.
template <class T>
void start_team(Int* is_last, T* lower, T* upper, Signed<T>* stride, Signed<T> step,
                Signed<T> chunk) {
    hand_out(static_share(Sched::distribute_chunked, *lower, *upper, step, chunk, team_of_league()),
             is_last, lower, upper, stride);
}

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-macro-parentheses): `T` is a type.
#define HIROBA_STATIC(suffix, T)                                                                  \
    void __kmpc_for_static_init_##suffix(Location* at, Int, Int schedule, Int* is_last, T* lower, \
                                         T* upper, Signed<T>* stride, Signed<T> step,             \
                                         Signed<T> chunk) {                                       \
        note_caller();                                                                            \
        tell_of_loop(at, schedule, *lower, *upper, step);                                         \
        start(schedule, is_last, lower, upper, stride, step, chunk);                              \
    }                                                                                             \
    void __kmpc_dist_for_static_init_##suffix(                                                    \
        Location* at, Int, Int schedule, Int* is_last, T* lower, T* upper, T* team_upper,         \
        Signed<T>* stride, Signed<T> step, Signed<T> chunk) {                                     \
        note_caller();                                                                            \
        tell_of_loop(at, schedule, *lower, *upper, step);                                         \
        start_both(schedule, is_last, lower, upper, team_upper, stride, step, chunk);             \
    }                                                                                             \
    void __kmpc_team_static_init_##suffix(Location*, Int, Int* is_last, T* lower, T* upper,       \
                                          Signed<T>* stride, Signed<T> step, Signed<T> chunk) {   \
        start_team(is_last, lower, upper, stride, step, chunk);                                   \
    }
// NOLINTEND(bugprone-macro-parentheses)

HIROBA_STATIC(4, Int)
HIROBA_STATIC(4u, Unsigned)
HIROBA_STATIC(8, Long)
HIROBA_STATIC(8u, UnsignedLong)

void __kmpc_for_static_fini(Location*, Int) {
    note_caller();
    tell_tool(ToolReport::work_ends);
}
void __kmpc_distribute_static_fini(Location*, Int) {
    note_caller();
    tell_tool(ToolReport::work_ends);
}

}  // extern "C"
