// SPDX-License-Identifier: BSD-3-Clause
// Role: parallel regions and barriers.
// Invariant: whatever synchronizes memory, and all waiting for it, is on the runtime stack, so that
// the program's stacks of this node stand still; the program's function runs on the program's.
#include <errno.h>
#include <string.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/program_call.hpp"
#include "base/record.hpp"
#include "base/service_thread.hpp"
#include "base/sync_place.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "omp/runtime_core.hpp"
#include "omp/task/reductions.hpp"
#include "omp/team/team_shape.hpp"
#include "omp/team/told_apart.hpp"
#include "omp/thread_part.hpp"
#include "omp/tool/task_observer.hpp"

namespace hiroba::omp {

namespace {
/// In a job of one node more threads than this are not made, whatever the program asks for.
constexpr std::uint32_t pool_threads_max = 4096;

/// @param memory  what the region's nodes share; null: it runs on this node alone
void run_function(const Fork& fork, dsm::SharedMemory* memory) noexcept {
    const void* const place = code_of(fork);
    synchronizes_at(SyncKind::region, place);
    // Other nodes read the variables of whoever met the region, on the stack right above it: what
    // the region itself keeps on the stack changes other blocks.
    if (memory != nullptr)
        call_program_apart(fork.function, fork.data, memory->map().shape().block_bytes);
    else
        call_program(fork.function, fork.data);
    synchronizes_at(SyncKind::end, place);
}
}  // namespace

std::uint32_t RuntimeCore::team_size_for(const ThreadState& thread, std::uint32_t requested,
                                         std::uint32_t threads_max) noexcept {
    const Frame& frame = *thread.frame;
    const Icvs& own = icvs();
    const std::uint32_t levels = std::min(own.max_active_levels, levels_supported);
    if (requested == 1 || over_.load(std::memory_order_relaxed) ||
        frame.place.active_level >= levels || !(may_lead(thread) || is_in_team(frame)))
        return 1;
    std::uint32_t threads = requested != 0 ? requested : own.threads;
    if (own.dynamic) threads = std::min(threads, processors_);
    if (own.dynamic && threads_max != 0) threads = std::min(threads, threads_max);
    const std::uint32_t most = std::min(thread_limit(), pool_threads_max);
    if (threads > most && most == nodes_ * parts_.threads_per_node_max)
        tell_of_limit(threads, most);
    return std::max(1u, std::min(threads, most));
}

/// Says once that the program asks for more threads than it gets.
void RuntimeCore::tell_of_limit(std::uint32_t wanted, std::uint32_t most) noexcept {
    if (told_of_limit_.exchange(true)) return;
    say("a team of %u threads was asked for and has %u: %u nodes have room for the stacks of %u "
        "threads each. Use more nodes, or --threads",
        wanted, most, nodes_, parts_.threads_per_node_max);
}

/// Whether it is inside a region of several threads, maybe in one of one thread.
bool RuntimeCore::is_in_team(const Frame& frame) const noexcept {
    for (const Frame* each = &frame; each != nullptr; each = each->parent)
        if (each->team != nullptr) return true;
    return false;
}

bool RuntimeCore::may_lead(const ThreadState& thread) const noexcept {
    // Without an initial thread this runtime serves what runs before main, on one thread.
    return thread.initial || (thread.foreign && node_ == 0 && threads_[0]->initial);
}

void RuntimeCore::parallel(OutlinedFunction function, void* data, std::uint32_t threads) noexcept {
    Fork fork;
    fork.function = function;
    fork.data = data;
    run(fork, threads, 0);
}

void RuntimeCore::parallel_at(const void* code, OutlinedFunction function, void* data,
                              std::uint32_t threads) noexcept {
    Fork fork;
    fork.code = code;
    fork.function = function;
    fork.data = data;
    run(fork, threads, 0);
}

void RuntimeCore::parallel_loop(OutlinedFunction function, void* data, std::uint32_t threads,
                                const Loop& loop, std::uint32_t threads_max) noexcept {
    Fork fork;
    fork.function = function;
    fork.data = data;
    fork.has_loop = true;
    fork.loop = loop;
    run(fork, threads, threads_max);
}

std::uint32_t RuntimeCore::parallel_reductions(OutlinedFunction function, void* data,
                                               std::uint32_t threads,
                                               std::uintptr_t* reductions) noexcept {
    Fork fork;
    fork.function = function;
    fork.data = data;
    fork.reductions = reductions;
    return run(fork, threads, 0);
}

std::uint32_t RuntimeCore::run(const Fork& wanted, std::uint32_t requested,
                               std::uint32_t threads_max) noexcept {
    ThreadState& thread = self();
    Fork fork = wanted;
    fork.bind = policy_of(thread);
    const std::uint32_t size = team_size_for(thread, requested, threads_max);
    if (size > 1 && is_in_team(*thread.frame)) return run_inner(thread, fork, size);
    // A thread that finds the team taken runs alone: its holder may wait for this very thread.
    if (size == 1 || leading_.taken.exchange(true, std::memory_order_acquire)) {
        make_copies(fork, 1);
        run_alone(thread, fork);
        return 1;
    }
    const std::uint32_t got =
        may_stay(fork, size) ? run_measured(thread, fork, size) : run_team(thread, fork, size);
    leading_.taken.store(false, std::memory_order_release);  // pairs with the exchange above
    return got;
}

/// Makes the private copies for task reductions of the region.
void RuntimeCore::make_copies(const Fork& fork, std::uint32_t threads) noexcept {
    if (fork.reductions == nullptr) return;
    reductions::allocate(fork.reductions, nullptr, threads,
                         [this](std::size_t bytes, std::size_t alignment) {
                             return tasks_.allocate_argument(bytes, alignment);
                         });
}

/// The ICVs with which the tasks of a region met in `outer` start. As gcc's runtime does it: behind
/// the end of OMP_NUM_THREADS' list, the value of the task around it.
Icvs RuntimeCore::icvs_inside(const Frame& outer) noexcept {
    Icvs inside = icvs();
    const std::uint32_t level = outer.place.level + 1;
    if (level < environment_.levels) inside.threads = environment_.threads_by_level[level];
    if (level < environment_.bind_by_level.size()) inside.bind = environment_.bind_by_level[level];
    return inside;
}

void RuntimeCore::run_alone(ThreadState& thread, const Fork& fork) noexcept {
    Frame frame;
    frame.parent = thread.frame;
    frame.icvs = icvs_inside(*thread.frame);
    frame.binding = thread.frame->binding;
    frame.reductions = fork.reductions;
    frame.place.level = thread.frame->place.level + 1;
    frame.place.active_level = thread.frame->place.active_level;
    thread.frame = &frame;
    if (pool_of(fork) == PoolKind::llvm) show_affinity(thread, PoolKind::llvm);
    if (fork.has_loop) loop_start(fork.loop);
    call_program(fork.function, fork.data);
    barrier();
    release_implicit(frame);
    thread.frame = frame.parent;
}

std::uint32_t RuntimeCore::run_team(ThreadState& thread, const Fork& wanted,
                                    std::uint32_t team_size) noexcept {
    start_team(thread, wanted, team_size);
    run_function(everywhere_.fork,
                 link_ != nullptr && nodes_of(team_size) > 1 ? parts_.memory : nullptr);
    finish_team(thread);
    return team_size;
}

void RuntimeCore::start_team(ThreadState& thread, const Fork& wanted,
                             std::uint32_t team_size) noexcept {
    make_copies(wanted, team_size);
    const Frame& outer = *thread.frame;
    Team& team = everywhere_;
    Fork& fork = team.fork;
    fork = wanted;
    begin_with_members(fork, team_size);
    fork.leader.floating_point = floating_point();
    trace("omp.fork", team_size, team.sequence);
    fork.place = {0, team_size, outer.place.level + 1, outer.place.active_level + 1};
    plan_to_show(fork, thread);
    fork.icvs = icvs_inside(outer);
    // The numbers go on from region to region: the last thread to leave a slot may do so late.
    fork.sequence = team.sequence;
    team.leader_binding = outer.binding;
    synchronizes_at(SyncKind::region, code_of(fork));
    if (parts_.flush_streams != nullptr && link_ != nullptr) parts_.flush_streams();
    if (parts_.publish_process != nullptr && nodes_of(team_size) > 1)
        fork.process = parts_.publish_process();
    const auto start = [this, team_size, &team] {
        if (link_ != nullptr && nodes_of(team_size) > 1)
            link_->fork(team.fork, nodes_of(team_size));
        else
            team.cancellation.begin(team.cancellation.number() + 1);
        if (link_ != nullptr) tasks_.exchange()->begin_region(link_->region(), nodes_of(team_size));
        start_members();
    };
    if (link_ != nullptr) {
        const WaitTimer timer{thread};
        const RecordedSpan recorded{RecordKind::fork, region_number() + 1};
        on_runtime_stack(start);
    } else {
        start();
    }
    Frame* const parent = thread.frame;
    thread.next_team = &team;
    enter_region(thread);
    thread.region.parent = parent;
}

void RuntimeCore::finish_team(ThreadState& thread) noexcept {
    Team& team = everywhere_;
    const std::uint32_t join_phase = team.join.phase();
    team.sequence = thread.region.sequence;
    thread.in_region = false;
    trace("omp.join", join_phase);
    record_end(thread);
    const RecordedSpan recorded{RecordKind::join, region_number()};
    if (link_ != nullptr) {
        join_nodes(thread, nodes_of(team.fork.place.team_size) > 1);
        apply_terms();
    } else {
        if (team.join.arrive()) team.join.open(patience_);
        work_until(thread, nullptr,
                   [&] { return team.join.phase() != join_phase && tasks_.quiet(); });
    }
    clean_after_cancellation(team);
    if (watch_.joinable()) segment_words_->store(Workshare::region_over, link_->region());
    release_implicit(thread.region);
    thread.frame = thread.region.parent;
}

std::uint32_t RuntimeCore::nodes_of(std::uint32_t team_size) const noexcept {
    return TeamShape{team_size, nodes_}.nodes_used();
}

std::uint32_t RuntimeCore::local_members(std::uint32_t team_size) const noexcept {
    return TeamShape{team_size, nodes_}.members_of(node_);
}

void RuntimeCore::start_members() noexcept {
    Team& team = everywhere_;
    const std::uint32_t members = local_members(team.fork.place.team_size);
    make_threads(members);
    members_here_ = members;
    patience_.is_crowded.store(members > processors_, std::memory_order_relaxed);
    team.barrier.set_members(members);
    team.join.set_members(members);
    team.reductions.forget();
    deal_out_members(team, members);
    regions_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t t = 0; t < members; ++t) threads_[t]->next_team = &team;
    for (std::uint32_t t = 1; t < members; ++t) threads_[t]->start.advance(patience_);
    if (link_ == nullptr && tasks_.has_waiting()) tasks_.ring();
}

void RuntimeCore::enter_region(ThreadState& thread) noexcept {
    Team& team = *thread.next_team;
    Frame& frame = thread.region;
    release_implicit(frame);
    const bool is_spread_team = &team == &everywhere_;
    const std::uint32_t member = is_spread_team ? thread.local_thread : thread.position;
    const std::uint32_t first =
        is_spread_team ? TeamShape{team.fork.place.team_size, nodes_}.first_of(node_) : 0;
    enter_frame(frame, team, first + member, member);
    thread.frame = &frame;
    thread.in_region = true;
    if (is_spread_team) {
        thread.region_entered = regions_.load(std::memory_order_relaxed);
        forget_lost(thread);
    }
    record_entry(frame, is_spread_team);
    inherit(thread, team);
    bind(thread);
    show_affinity(thread, pool_of(team.fork), team.fork.shows_affinity);
    if (team.fork.has_loop) loop_start(team.fork.loop);
}

Inheritance RuntimeCore::inheritance() const noexcept {
    const auto of_this_thread = parts_.inheritance.of_this_thread;
    return {floating_point(), of_this_thread != nullptr ? of_this_thread() : nullptr};
}

void RuntimeCore::inherit(ThreadState& thread, const Team& team) noexcept {
    const Fork& fork = team.fork;
    const std::uint32_t number = thread.region.place.thread;
    bool takes = false;
    if (&team != &everywhere_ && !fork.stays)
        takes = thread.inheritance.help(fork.leader, parts_.inheritance);
    else if (number != 0)
        takes = thread.inheritance.enter(number, fork.made, pool_of(fork),
                                         fork.leader.floating_point, parts_.inheritance);
    if (takes) thread.bound_place = Binding::nowhere;  // the kernel has been told another since
}

void RuntimeCore::enter_frame(Frame& frame, Team& team, std::uint32_t thread,
                              std::uint32_t member) noexcept {
    const Fork& fork = team.fork;
    frame.parent = team.outer;
    frame.place = fork.place;
    frame.place.thread = thread;
    frame.icvs = fork.icvs;
    frame.team = &team;
    frame.binding = member < team.bindings.size() ? team.bindings[member] : Binding{};
    frame.phase = 0;
    frame.sequence = fork.sequence;
    frame.reductions_met = 0;
    frame.reductions = fork.reductions;
    frame.sections = 0;
    frame.loop_memory = nullptr;
    frame.doacross.forget();
}

/// True for the last, which goes on alone; false: wait for `barrier` to leave the phase.
bool RuntimeCore::arrive(Standing& standing, LocalBarrier& barrier) noexcept {
    if (!standing.arrived) {
        standing.phase = barrier.phase();
        standing.arrived = true;
        standing.last = barrier.arrive();
    }
    return standing.last;
}

// A region is over when all threads have come and no task is left. Each node says that of itself,
// maybe while it has tasks of others: those count where they were created (docs/layers/tasks.md).
void RuntimeCore::join_nodes(ThreadState& thread, bool several) noexcept {
    thread.standing = {};
    const auto step = [this, &thread, several] {
        Standing& standing = thread.standing;
        LocalBarrier& joins = everywhere_.join;
        if (!standing.arrived && arrive(standing, joins)) joins.open(patience_);
        TaskPool::Waiting waiting{tasks_};
        const Lookout lookout{tasks_, thread.events_seen};
        const auto here = [&] { return joins.phase() != standing.phase && tasks_.quiet(); };
        const bool over = link_->await(here, lookout.distraction()) &&
                          (!several || link_->join(lookout.distraction()));
        if (!over) waiting.will_attend();
        return over;
    };
    WaitTimer timer{thread};
    link_->in_steps(step, [&] { timer.pause_for([&] { help(thread); }); });
}

void RuntimeCore::work(std::uint32_t local_thread) noexcept {
    ThreadState& thread = *threads_[local_thread];
    thread_part().state = &thread;
    serves_regions = true;
    if (is_recording()) record(RecordKind::member, this_thread().global_thread);
    const auto await_next = [&] {
        if (thread.in_region) record_end(thread);
        const RecordedSpan recorded{RecordKind::idle, region_number()};
        return link_ != nullptr ? await_region(thread) : await_region_here(thread);
    };
    while (await_next()) {
        enter_region(thread);
        // No other node reads what this thread meets by itself.
        run_function(thread.next_team->fork, nullptr);
    }
    thread.frame = &thread.base;
    if (parts_.observer != nullptr) parts_.observer->thread_ends();
}

bool RuntimeCore::await_region_here(ThreadState& thread) noexcept {
    LocalBarrier* const join = thread.in_region ? &thread.next_team->join : nullptr;
    if (join != nullptr && join->arrive()) {
        join->open(patience_);
        if (tasks_.has_waiting()) tasks_.ring();
    }
    thread.in_region = false;
    work_until(thread, nullptr, [&] { return thread.start.value() != thread.start_seen; });
    ++thread.start_seen;
    return !over_.load();
}

bool RuntimeCore::await_region(ThreadState& thread) noexcept {
    thread.standing = {};
    TeamLink::Called called = TeamLink::Called::elsewhere;
    const auto step = [&] {
        TaskPool::Waiting waiting{tasks_};
        called = await_region_step(thread);
        const bool goes_on = called == TeamLink::Called::region || called == TeamLink::Called::end;
        if (!goes_on) waiting.will_attend();
        return goes_on;
    };
    link_->in_steps(step, [&] {
        if (called == TeamLink::Called::handlers) link_->release_what_handlers_wrote();
        help(thread);
    });
    return called == TeamLink::Called::region;
}

TeamLink::Called RuntimeCore::await_region_step(ThreadState& thread) noexcept {
    const Lookout lookout{tasks_, thread.events_seen};
    const Distraction distraction = lookout.distraction();
    Standing& standing = thread.standing;
    if (thread.in_region) {
        Team& team = *thread.next_team;
        if (!standing.arrived) note_kept(thread);
        const bool speaks_for_node = node_ != 0 && &team == &everywhere_;
        if (!standing.arrived && arrive(standing, team.join) && !speaks_for_node)
            team.join.open(patience_);
        if (standing.last && speaks_for_node) {
            // This thread may have tasks of the nodes that it waits for, so it goes on executing
            // tasks.
            const auto joins = [this] { return tasks_.quiet() && link_->children_have_joined(); };
            const TeamLink::Called called = link_->await_region(joins, distraction);
            if (called != TeamLink::Called::region) return called;
            leave_region(thread);
        }
        thread.in_region = false;
    }
    if (thread.local_thread == 0) return await_region_as_leader(distraction);
    const auto starts = [&] { return thread.start.value() != thread.start_seen; };
    const TeamLink::Called called = link_->await_region(starts, distraction);
    if (called != TeamLink::Called::region) return called;
    ++thread.start_seen;
    return over_.load() ? TeamLink::Called::end : TeamLink::Called::region;
}

/// Called on nodes other than 0 by the last thread that arrives, which speaks for its node; node
/// 0's initial thread waits itself. The caller flushes the streams for all threads: an
/// unsynchronized std::cout bears one thread at a time.
void RuntimeCore::leave_region(ThreadState&) noexcept {
    if (parts_.flush_streams != nullptr) parts_.flush_streams();
    link_->arrive_at_join();
    everywhere_.join.open(patience_);
}

TeamLink::Called RuntimeCore::await_region_as_leader(Distraction distraction) noexcept {
    Fork& fork = everywhere_.fork;
    const TeamLink::Called called = link_->await_fork(&fork, distraction);
    if (called == TeamLink::Called::handlers || called == TeamLink::Called::elsewhere)
        return called;
    if (called == TeamLink::Called::end) {
        over_.store(true);
        for (std::uint32_t t = 1; t < threads_.size(); ++t) threads_[t]->start.advance(patience_);
        return called;
    }
    const std::uint32_t members = nodes_of(fork.place.team_size);
    link_->set_members(members);
    tasks_.exchange()->begin_region(link_->region(), members);
    if (parts_.apply_process != nullptr && fork.process.bytes != nullptr)
        parts_.apply_process(fork.process);
    start_members();
    return called;
}

void RuntimeCore::quit() noexcept {
    record(RecordKind::program, 0);
    over_.store(true);
    const bool along_tree = !leading_.taken.load(std::memory_order_acquire);
    if (link_ != nullptr) on_runtime_stack([&] { link_->send_quit(along_tree); });
    for (std::uint32_t t = 1; t < threads_.size(); ++t) threads_[t]->start.advance(patience_);
    if (link_ == nullptr) tasks_.ring();
}

void RuntimeCore::barrier() noexcept {
    ThreadState& thread = self();
    Frame& frame = *thread.frame;
    if (frame.team == nullptr) {
        ++frame.phase;
        Task* const task = frame.implicit;
        if (task == nullptr) return;
        return work_until(thread, task, [task] { return task->descendants.count == 0; });
    }
    if (is_cancelled(frame)) return;
    trace("omp.barrier", frame.place.thread, frame.sequence);
    record_arrival(thread);
    pass_barrier(thread, frame);
    record_phase(region_number() + ++frame.phase);
}

void RuntimeCore::pass_barrier(ThreadState& thread, Frame& frame) noexcept {
    const RecordedSpan recorded{RecordKind::barrier, region_number(), meeting_of(frame)};
    if (!is_spread(frame)) return barrier_here(thread, *frame.team);
    thread.standing = {};
    const bool several = nodes_of(frame.place.team_size) > 1;
    const auto step = [this, &thread, several] {
        TaskPool::Waiting waiting{tasks_};
        const bool through = barrier_step(thread, several);
        if (!through) waiting.will_attend();
        return through;
    };
    WaitTimer timer{thread};
    link_->in_steps(step, [&] { timer.pause_for([&] { help(thread); }); });
    forget_lost(thread);
}

/// The barrier of a team whose threads are all on this node.
void RuntimeCore::barrier_here(ThreadState& thread, Team& team) noexcept {
    const Cancellation& cancelled = team.cancellation;
    LocalBarrier& barrier = team.barrier;
    const std::uint32_t phase = barrier.phase();
    if (!barrier.arrive())
        return work_until(thread, nullptr,
                          [&] { return barrier.phase() != phase || cancelled.region(); });
    if (!TaskPool::quiet(*team.tasks))
        work_until(thread, nullptr,
                   [&] { return TaskPool::quiet(*team.tasks) || cancelled.region(); });
    if (cancelled.region()) return;
    barrier.open(patience_);
    if (tasks_.has_waiting()) tasks_.ring();
}

bool RuntimeCore::barrier_step(ThreadState& thread, bool several) noexcept {
    Standing& standing = thread.standing;
    LocalBarrier& barrier = everywhere_.barrier;
    const Cancellation& cancelled = everywhere_.cancellation;
    const Lookout lookout{tasks_, thread.events_seen, &cancelled};
    const Distraction distraction = lookout.distraction();
    if (cancelled.region()) return true;
    if (!arrive(standing, barrier)) {
        const bool passed =
            link_->await([&] { return barrier.phase() != standing.phase; }, distraction);
        return passed || cancelled.region();
    }
    if (!standing.begun) {
        if (!link_->await([this] { return tasks_.quiet(); }, distraction)) return false;
        if (several) link_->begin_barrier();
        standing.begun = true;
    }
    if (several && !link_->finish_barrier(distraction)) return false;
    // Where regions may be cancelled, news leave out nothing for a barrier, and not all nodes pass
    // the same ones.
    if (several && !environment_.cancellation) tasks_.exchange()->pass_barrier();
    barrier.open(patience_);
    return true;
}

struct PoolStart {
    RuntimeCore* runtime;
    std::uint32_t local_thread;
};

void* RuntimeCore::pool_thread(void* argument) noexcept {
    const std::unique_ptr<PoolStart> start(static_cast<PoolStart*>(argument));
    start->runtime->work(start->local_thread);
    return nullptr;
}

void RuntimeCore::add_thread_states(std::uint32_t threads) {
    for (auto t = static_cast<std::uint32_t>(threads_.size()); t < threads; ++t) {
        threads_.push_back(std::make_unique<ThreadState>());
        threads_[t]->runtime = this;
        threads_[t]->local_thread = t;
        threads_[t]->base.icvs = environment_.initial;
    }
}

std::uint32_t RuntimeCore::threads_max_here() const noexcept {
    return link_ != nullptr ? parts_.threads_per_node_max : pool_threads_max;
}

void RuntimeCore::make_threads(std::uint32_t threads) {
    if (link_ == nullptr) {
        if (threads_.size() < threads || pool_.size() + 1 < threads) grow_pool(threads);
    } else if (threads_.size() < threads) {
        grow_node(threads);
    }
}

/// In a job of several nodes: a team needs more threads of this node than there were at the start.
void RuntimeCore::grow_node(std::uint32_t threads) {
    const auto before = static_cast<std::uint32_t>(threads_.size());
    add_thread_states(threads);
    for (std::uint32_t t = before; t < threads; ++t) parts_.start_thread(t);
}

void RuntimeCore::grow_pool(std::uint32_t threads) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (environment_.stack_bytes != 0 &&
        pthread_attr_setstacksize(&attributes, environment_.stack_bytes) != 0)
        say("OMP_STACKSIZE: a stack of %lu bytes cannot be had; the system's default is used",
            static_cast<unsigned long>(environment_.stack_bytes));
    add_thread_states(threads);
    for (auto t = static_cast<std::uint32_t>(pool_.size()) + 1; t < threads; ++t) {
        pthread_t thread;
        const int error = pthread_create(&thread, &attributes, pool_thread, new PoolStart{this, t});
        if (error != 0)
            die(exit_environment, "thread %u of %u cannot be started: %s; set OMP_NUM_THREADS. %s",
                t, threads, strerror(error), thread_advice(error));
        pool_.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
}

}  // namespace hiroba::omp
