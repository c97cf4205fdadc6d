// SPDX-License-Identifier: BSD-3-Clause
// Role: regions, leagues, and which thread the caller is.
// Invariant: what a region is given lies on the stack of the thread that starts it, which every
// node reaches.
#include <alloca.h>

#include <cstdarg>
#include <cstring>
#include <utility>

#include "abi/kmp/thread_notes.hpp"
#include "base/program_call.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

namespace {

/// A microtask and its pointers, which follow it.
struct Region {
    Microtask microtask;
    std::size_t count;
    void** pointers() noexcept { return reinterpret_cast<void**>(this + 1); }
};

void enter(Microtask microtask, void* const* pointers, std::size_t count) {
    Int thread = static_cast<Int>(runtime().place().thread);
    Int bound_thread = thread;
    auto** const words = static_cast<void**>(alloca((count + 2) * sizeof(void*)));
    words[0] = &thread;
    words[1] = &bound_thread;
    if (count != 0) std::memcpy(words + 2, pointers, count * sizeof(void*));
    // A cancelled region is left in the middle of its loops.
    const Unsigned loops = std::exchange(notes().open_loops, 0);
    hiroba::call_program_with(as_pointer(microtask), words, count + 2);
    notes().open_loops = loops;
}

void enter_region(void* at) {
    auto* const region = static_cast<Region*>(at);
    enter(region->microtask, region->pointers(), region->count);
}

void run_region(Region* region) {
    runtime().parallel_at(as_pointer(region->microtask), &enter_region, region,
                          take(notes().threads));
}

void run_league(Region* region) {
    ThreadNotes& own = notes();
    const Unsigned limit = take(own.thread_limit);
    Unsigned teams = take(own.teams);
    // Unlike gcc's runtime, clang's makes one team without num_teams.
    if (teams == 0) teams = static_cast<Unsigned>(std::max(runtime().icvs().teams, 1));
    runtime().league(&enter_region, region, teams, limit);
}

void begin_alone() noexcept {
    take(notes().threads);
    runtime().begin_alone();
}

}  // namespace

/// Lays the region out on the stack of the entry point, whose pointers come behind `last`.
#define HIROBA_WITH_REGION(microtask, pointer_count, last, run)                                \
    const auto count = static_cast<std::size_t>(pointer_count);                                \
    auto* const region = static_cast<Region*>(alloca(sizeof(Region) + count * sizeof(void*))); \
    *region = {microtask, count};                                                              \
    va_list rest;                                                                              \
    va_start(rest, last);                                                                      \
    for (std::size_t i = 0; i < count; ++i) region->pointers()[i] = va_arg(rest, void*);       \
    va_end(rest);                                                                              \
    run(region)

extern "C" {

Int __kmpc_global_thread_num(Location*) { return static_cast<Int>(runtime().place().thread); }
Int __kmpc_global_num_threads(Location*) { return static_cast<Int>(runtime().place().team_size); }
Int __kmpc_bound_thread_num(Location*) { return static_cast<Int>(runtime().place().thread); }
Int __kmpc_bound_num_threads(Location*) { return static_cast<Int>(runtime().place().team_size); }
Int __kmpc_in_parallel(Location*) { return runtime().place().active_level > 0; }
Int __kmpc_ok_to_fork(Location*) { return 1; }
void __kmpc_begin(Location*, Int) {}
void __kmpc_end(Location*) {}

void __kmpc_fork_call(Location*, Int pointers, Microtask microtask, ...) {
    note_caller();
    HIROBA_WITH_REGION(microtask, pointers, microtask, run_region);
}
void __kmpc_fork_call_if(Location*, Int, Microtask microtask, Int condition, void* pointer) {
    note_caller();
    struct {
        Region region;
        void* pointer;
    } given{{microtask, pointer != nullptr}, pointer};
    if (condition != 0) return run_region(&given.region);
    begin_alone();
    enter_region(&given.region);
    runtime().end_alone();
}
void __kmpc_fork_teams(Location*, Int pointers, Microtask microtask, ...) {
    note_caller();
    HIROBA_WITH_REGION(microtask, pointers, microtask, run_league);
}

void __kmpc_serialized_parallel(Location*, Int) {
    note_caller();
    begin_alone();
}
void __kmpc_end_serialized_parallel(Location*, Int) {
    note_caller();
    runtime().end_alone();
}

void __kmpc_push_num_threads(Location*, Int, Int threads) {
    notes().threads = static_cast<Unsigned>(std::max(threads, 0));
}
void __kmpc_push_num_threads_strict(Location*, Int, Int threads, int, const char*) {
    notes().threads = static_cast<Unsigned>(std::max(threads, 0));
}
void __kmpc_push_num_threads_list(Location*, Int, Unsigned length, Int* threads) {
    if (length != 0) notes().threads = static_cast<Unsigned>(std::max(threads[0], 0));
}
void __kmpc_push_num_threads_list_strict(Location*, Int, Unsigned length, Int* threads, int,
                                         const char*) {
    if (length != 0) notes().threads = static_cast<Unsigned>(std::max(threads[0], 0));
}
void __kmpc_pop_num_threads(Location*, Int) {}
// The numbers are omp_proc_bind_t's.
void __kmpc_push_proc_bind(Location*, Int, int policy) {
    constexpr int primary = 2, spread = 4;
    if (policy >= primary && policy <= spread)
        runtime().want_binding(static_cast<hiroba::omp::ProcBind>(policy));
}

void __kmpc_push_num_teams(Location*, Int, Int teams, Int thread_limit) {
    notes().teams = static_cast<Unsigned>(std::max(teams, 0));
    notes().thread_limit = static_cast<Unsigned>(std::max(thread_limit, 0));
}
void __kmpc_push_num_teams_51(Location*, Int, Int, Int teams_max, Int thread_limit) {
    notes().teams = static_cast<Unsigned>(std::max(teams_max, 0));
    notes().thread_limit = static_cast<Unsigned>(std::max(thread_limit, 0));
}
void __kmpc_set_thread_limit(Location*, Int, Int thread_limit) {
    if (thread_limit > 0) runtime().icvs().thread_limit = static_cast<Unsigned>(thread_limit);
}

}  // extern "C"
