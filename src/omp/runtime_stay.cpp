// SPDX-License-Identifier: BSD-3-Clause
// Role: decides where the team of a region runs: spread over the nodes, or all of it on the
// leader's (docs/decisions/small-regions-stay.md).
// Invariant: a program whose threads can tell each other apart from region to region, by data of
// their own or by what the system keeps of them, finds each where it was: its regions do not move.
#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "omp/runtime_core.hpp"
#include "omp/team/told_apart.hpp"

namespace hiroba::omp {

// No thread of the node helps a team at this moment: those are inside of regions, and their leader
// would have taken the spread team.
bool RuntimeCore::may_stay(const Fork& fork, std::uint32_t team_size) noexcept {
    if (parts_.regions == Parts::Regions::spread || link_ == nullptr || nodes_of(team_size) == 1)
        return false;
    // Threads that are bound, counted or have teams of their own would find less room.
    if (fork.bind != ProcBind::none || contention_limit() != thread_limit_none) return false;
    if (icvs().max_active_levels > 1) return false;
    return members_here_ + team_size - 1 <= threads_max_here();
}

// What threads have for themselves they may have by now: by a library that was opened, or since the
// leader has changed how it computes, and others may have done so with it.
RuntimeCore::Place RuntimeCore::place_of_all() noexcept {
    if (leading_.place != Place::any) return leading_.place;
    if (!leading_.computes_known) leading_.computes = computing();
    leading_.computes_known = true;
    if (program_tells_threads_apart.load(std::memory_order_relaxed) ||
        computing() != leading_.computes)
        leading_.place = Place::spread;
    return leading_.place;
}

// Where it has become so in a region that stayed, its threads have it here.
void RuntimeCore::note_stayed(const void* code, std::uint64_t took_ns) noexcept {
    leading_.stayed.note(code, took_ns);
    if (leading_.place == Place::any &&
        (program_tells_threads_apart.load(std::memory_order_relaxed) ||
         computing() != leading_.computes))
        leading_.place = Place::here;
}

// A thread that is not the leader has computed otherwise from here on, or holds a lock that another
// thread of its number could not give up.
void RuntimeCore::note_kept(const ThreadState& thread) noexcept {
    if (owned_locks != 0 || thread.inheritance.computes_otherwise())
        program_tells_threads_apart.store(true, std::memory_order_relaxed);
}

MemoryEvents RuntimeCore::memory_events() const noexcept {
    const dsm::MemoryCounts counts = parts_.memory->counts();
    return {counts.read_faults + counts.write_faults, counts.taken_first, counts.atomics,
            counts.waited_ns};
}

/// @return whether the region stays; *alone: it has been asked for itself
bool RuntimeCore::choose(const void* code, std::uint32_t size, std::uint64_t now,
                         bool* alone) noexcept {
    *alone = false;
    if (parts_.regions == Parts::Regions::turns) {
        // Each function comes to run either way, in whatever order functions follow each other.
        leading_.turn = leading_.turn * 6364136223846793005u + 1442695040888963407u;
        return leading_.turn >> 63 != 0;
    }
    const MemoryEvents serial = memory_events() - leading_.events;
    const std::uint64_t least_ns = leading_.busy.least_ns(now - leading_.end_ns, serial);
    if (leading_.regions_together.begin(code, size, now, least_ns)) {
        leading_.small_regions.pass_over();
        return true;
    }
    *alone = true;
    return leading_.small_regions.choose(code, size, now) == SmallRegions::here;
}

/// A region that stays has the members that it would have spread: what each has changed it keeps.
void RuntimeCore::begin_with_members(Fork& fork, std::uint32_t team_size) noexcept {
    leading_.made.begin_region(team_size, pool_of(fork), [this] { return inheritance(); });
    fork.made = leading_.made;
}

std::uint32_t RuntimeCore::run_staying(ThreadState& thread, const Fork& fork,
                                       std::uint32_t size) noexcept {
    Fork here = fork;
    here.stays = true;
    return run_inner(thread, here, size);
}

std::uint32_t RuntimeCore::run_measured(ThreadState& thread, const Fork& fork,
                                        std::uint32_t size) noexcept {
    const Place place = place_of_all();
    if (place == Place::spread) return run_team(thread, fork, size);
    const void* const code = code_of(fork);
    const std::uint64_t begin_ns = now_ns();
    leading_.stayed.begin(begin_ns);
    if (place == Place::here) {
        const std::uint32_t got = run_staying(thread, fork, size);
        leading_.stayed.note(code, now_ns() - begin_ns);
        return got;
    }
    bool alone = false;
    const bool stays = choose(code, size, begin_ns, &alone);
    const MemoryEvents before = memory_events();
    thread.waited_ns = 0;
    thread.is_timed = !stays;
    const std::uint32_t got =
        stays ? run_staying(thread, fork, size) : run_team(thread, fork, size);
    thread.is_timed = false;
    leading_.end_ns = now_ns();
    leading_.events = memory_events();
    const std::uint64_t took_ns = leading_.end_ns - begin_ns;
    if (alone) leading_.small_regions.note(code, size, took_ns);
    if (stays) {
        note_stayed(code, took_ns);
        leading_.busy.forget();
    } else {
        leading_.busy.note_region(size, local_members(size), took_ns, thread.waited_ns,
                                  leading_.events - before);
    }
    return got;
}

}  // namespace hiroba::omp
