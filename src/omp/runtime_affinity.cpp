// SPDX-License-Identifier: BSD-3-Clause
// Role: where threads run: each binds itself when it enters a region.
// Invariant: places are those of this node. The leader of a team stays where it is; on other nodes
// the first member is at the first place.
#include <utility>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "omp/runtime_core.hpp"

namespace hiroba::omp {

/// The policy of the thread's next region. A clause says nothing where threads are not bound.
ProcBind RuntimeCore::policy_of(ThreadState& thread) noexcept {
    const ProcBind clause = std::exchange(thread.wanted_binding, ProcBind::none);
    if (environment_.places.empty()) return ProcBind::none;
    const ProcBind own = icvs().bind;
    return own != ProcBind::none && clause != ProcBind::none ? clause : own;
}

/// Called while no member but the leader is there.
void RuntimeCore::deal_out_members(Team& team, std::uint32_t members) noexcept {
    const auto places = static_cast<std::uint32_t>(environment_.places.size());
    if (places == 0) return;
    const RuntimeScope here;
    team.bindings.clear();
    if (team.fork.bind == ProcBind::none) return;
    Binding leader = team.leader_binding;
    if (leader.place == Binding::nowhere) leader = {0, 0, places};
    team.bindings = deal_out(team.fork.bind, members, leader);
}

void RuntimeCore::bind(ThreadState& thread) noexcept {
    const std::uint32_t place = thread.frame->binding.place;
    if (place == Binding::nowhere || place == thread.bound_place) return;
    thread.bound_place = place;
    if (!bind_to(environment_.places[place]))
        say("thread %u cannot be bound to place %u of OMP_PLACES: the kernel refuses it",
            thread.frame->place.thread, place);
}

/// Before a team starts. In LLVM's runtime all threads of a team show where they run if one does.
void RuntimeCore::plan_to_show(Fork& fork, const ThreadState& leader) noexcept {
    const Shown wanted{fork.place.team_size, fork.place.level, fork.bind};
    fork.shows_affinity = pool_of(fork) == PoolKind::llvm && leader.shown != wanted;
}

/// OMP_DISPLAY_AFFINITY: at its first region, and whenever something has changed. LLVM's runtime
/// takes the nesting and the binding for something, and regions of one thread.
void RuntimeCore::show_affinity(ThreadState& thread, PoolKind pool, bool in_any_case) noexcept {
    if (!environment_.display_affinity || parts_.show_affinity == nullptr) return;
    const Frame& frame = *thread.frame;
    Shown now{frame.place.team_size, 0, ProcBind::none};
    if (pool == PoolKind::llvm) {
        now.level = frame.place.level;
        now.bind = frame.team != nullptr ? frame.team->fork.bind : thread.shown.bind;
    }
    const bool is_new = std::exchange(thread.shown, now) != now;
    if (is_new || in_any_case) parts_.show_affinity();
}

}  // namespace hiroba::omp
