// SPDX-License-Identifier: BSD-3-Clause
// Role: regions inside regions: teams whose threads are all on the node of their leader.
// Invariant: such a team shares the node's memory, so neither its start nor its barriers and its
// end release or acquire anything. Its helpers are threads of the node that are in no team; they
// arrive at its end on the runtime stack, so that a thread that releases behind it finds them
// there.
#include <mutex>

#include "base/fatal.hpp"
#include "base/program_call.hpp"
#include "base/thread_context.hpp"
#include "omp/runtime_core.hpp"

namespace hiroba::omp {

/// Under the latch: how many more threads of this node may be in teams, where their number is
/// limited. On several nodes each has its share of what the team that is spread over them leaves.
/// A target region inside that team begins to count anew.
std::uint32_t RuntimeCore::helpers_allowed(const Frame& frame, std::uint32_t limit) noexcept {
    if (limit == thread_limit_none) return limit;
    const Frame* each = &frame;
    while (each->team != &everywhere_ && each->place.level > 0 && each->parent != nullptr)
        each = each->parent;
    if (each->team != &everywhere_ && each->place.level == 0) return limit - 1;
    const std::uint32_t taken = everywhere_.fork.place.team_size;
    const std::uint32_t share = limit > taken ? (limit - taken) / nodes_ : 0;
    return share > helping_ ? share - helping_ : 0;
}

/// The thread limit of the contention group; the room for threads and stacks limits them besides.
std::uint32_t RuntimeCore::contention_limit() noexcept {
    const std::uint32_t own = icvs().thread_limit;
    return std::min(environment_.thread_limit, own != 0 ? own : thread_limit_none);
}

Team& RuntimeCore::take_team(const Frame& outer, std::uint32_t wanted,
                             std::uint32_t limit) noexcept {
    const std::scoped_lock guard{helpers_latch_};
    if (free_teams_.empty()) {
        Team& made = *teams_.emplace_back(std::make_unique<Team>());
        made.own_words = std::make_unique<LocalWords>(store_words);
        made.own_progress = std::make_unique<LocalWords>(Doacross::words);
        made.words = made.own_words.get();
        made.progress = made.own_progress.get();
        made.tasks = &made.own_tasks;
        free_teams_.push_back(&made);
    }
    Team& team = *free_teams_.back();
    free_teams_.pop_back();
    const std::uint32_t most = threads_max_here();
    const std::uint32_t helpers = std::min(wanted - 1, helpers_allowed(outer, limit));
    for (std::uint32_t t = members_here_; team.helpers.size() < helpers && t < most; ++t) {
        if (t >= threads_.size() || (link_ == nullptr && t > pool_.size())) make_threads(t + 1);
        if (threads_[t]->helps) continue;
        threads_[t]->helps = true;
        ++helping_;
        team.helpers.push_back(threads_[t].get());
    }
    return team;
}

void RuntimeCore::give_team_back(Team& team) noexcept {
    const RuntimeScope here;
    const std::scoped_lock guard{helpers_latch_};
    for (ThreadState* const helper : team.helpers) helper->helps = false;
    helping_ -= static_cast<std::uint32_t>(team.helpers.size());
    team.helpers.clear();
    free_teams_.push_back(&team);
}

void RuntimeCore::start_helpers(Team& team) noexcept {
    const auto members = static_cast<std::uint32_t>(team.helpers.size()) + 1;
    if (members > processors_) patience_.is_crowded.store(true, std::memory_order_relaxed);
    team.barrier.set_members(members);
    team.join.set_members(members);
    team.cancellation.begin(team.cancellation.number() + 1);
    for (std::uint32_t i = 0; i < team.helpers.size(); ++i) {
        ThreadState& helper = *team.helpers[i];
        helper.next_team = &team;
        helper.position = i + 1;
        helper.start.advance(patience_);
    }
    if (link_ == nullptr && tasks_.has_waiting()) tasks_.ring();
}

/// Returns when all have come and no task of the team is left; then no thread refers to the team
/// any more.
void RuntimeCore::finish_inner(ThreadState& thread, Team& team) noexcept {
    const std::uint32_t phase = team.join.phase();
    if (team.join.arrive()) team.join.open(patience_);
    work_until(thread, nullptr,
               [&] { return team.join.phase() != phase && TaskPool::quiet(*team.tasks); });
    tasks_.with_books([&team](TaskBook&) {
        for (ThreadState* const helper : team.helpers) helper->region.team = nullptr;
    });
    team.sequence = team.leader.sequence;
    clean_after_cancellation(team);
    release_implicit(team.leader);
    thread.frame = team.outer;
    give_team_back(team);
}

std::uint32_t RuntimeCore::run_inner(ThreadState& thread, const Fork& fork,
                                     std::uint32_t wanted) noexcept {
    Team* const team = start_inner(thread, fork, wanted);
    if (team == nullptr) {
        run_alone(thread, fork);
        return 1;
    }
    const std::uint32_t size = team->fork.place.team_size;
    call_program(fork.function, fork.data);
    finish_inner(thread, *team);
    return size;
}

/// Null: it would have one thread.
Team* RuntimeCore::start_inner(ThreadState& thread, const Fork& fork,
                               std::uint32_t wanted) noexcept {
    Team* team = nullptr;
    const std::uint32_t limit = contention_limit();
    const auto take = [&] { team = &take_team(*thread.frame, wanted, limit); };
    if (link_ != nullptr) {
        on_runtime_stack(take);
    } else {
        const RuntimeScope here;
        take();
    }
    const auto size = static_cast<std::uint32_t>(team->helpers.size()) + 1;
    if (size < wanted && limit == thread_limit_none) tell_of_node_limit(wanted, size);
    make_copies(fork, size);
    if (size == 1) {
        give_team_back(*team);
        return nullptr;
    }
    Frame* const outer = thread.frame;
    team->fork = fork;
    if (fork.stays) begin_with_members(team->fork, size);
    team->fork.leader = inheritance();
    team->fork.place = {0, size, outer->place.level + 1, outer->place.active_level + 1};
    plan_to_show(team->fork, thread);
    team->fork.icvs = icvs_inside(*outer);
    team->fork.sequence = team->sequence;
    team->outer = outer;
    team->leader_binding = outer->binding;
    deal_out_members(*team, size);
    start_helpers(*team);
    enter_frame(team->leader, *team, 0, 0);
    thread.frame = &team->leader;
    show_affinity(thread, pool_of(fork), team->fork.shows_affinity);
    if (fork.has_loop) loop_start(fork.loop);
    return team;
}

/// Says once that a team inside a region gets fewer threads than it asks for.
void RuntimeCore::tell_of_node_limit(std::uint32_t wanted, std::uint32_t has) noexcept {
    if (told_of_limit_.exchange(true)) return;
    say("node %u: a team of %u threads inside a region was asked for and has %u: a node has room "
        "for %u threads in all. Use more nodes, or --threads",
        node_, wanted, has, threads_max_here());
}

}  // namespace hiroba::omp
