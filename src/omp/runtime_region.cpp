// SPDX-License-Identifier: BSD-3-Clause
// Role: parallel regions and barriers.
// Invariant: whatever synchronizes memory, and all waiting for it, is on the runtime stack, so that
// the program's stacks of this node stand still; the program's function runs on the program's.
#include <errno.h>
#include <string.h>

#include <algorithm>

#include "base/fatal.hpp"
#include "base/program_call.hpp"
#include "base/service_thread.hpp"
#include "base/sync_place.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "omp/runtime_core.hpp"
#include "omp/task/reductions.hpp"
#include "omp/team/team_shape.hpp"

namespace hiroba::omp {

namespace {
/// One node only: more threads than this are not made, whatever the program asks for.
constexpr std::uint32_t pool_threads_max = 4096;

const void* code_of(const Fork& fork) noexcept {
    return fork.code != nullptr ? fork.code : reinterpret_cast<const void*>(fork.function);
}

/// Both ends of a region are one place: what its beginning made necessary, and its join.
void run_function(const Fork& fork) noexcept {
    const void* const place = code_of(fork);
    synchronizes_at(SyncKind::region, place);
    call_program(fork.function, fork.data);
    synchronizes_at(SyncKind::region, place);
}
}  // namespace

std::uint32_t RuntimeCore::team_size_for(const ThreadState& thread, std::uint32_t requested,
                                         std::uint32_t threads_max) noexcept {
    const Frame& frame = *thread.frame;
    const Icvs& own = icvs();
    const std::uint32_t levels = std::min(own.max_active_levels, levels_supported);
    if (requested == 1 || !may_lead(thread) || over_.load(std::memory_order_relaxed) ||
        frame.place.active_level >= levels)
        return 1;
    std::uint32_t threads = requested != 0 ? requested : own.threads;
    if (own.dynamic) threads = std::min(threads, processors_);
    if (threads_max != 0) threads = std::min(threads, threads_max);
    const std::uint32_t most = std::min(thread_limit(), pool_threads_max);
    if (threads > most && environment_.thread_limit > most) tell_of_limit(threads, most);
    return std::max(1u, std::min(threads, most));
}

/// Once: the program asks for more threads than it gets.
void RuntimeCore::tell_of_limit(std::uint32_t wanted, std::uint32_t most) noexcept {
    if (told_of_limit_.exchange(true)) return;
    say("a team of %u threads was asked for and has %u: %u nodes have room for the stacks of %u "
        "threads each. Use more nodes, or --threads",
        wanted, most, nodes_, parts_.threads_per_node_max);
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

std::uint32_t RuntimeCore::run(const Fork& fork, std::uint32_t requested,
                               std::uint32_t threads_max) noexcept {
    ThreadState& thread = self();
    const auto make_copies = [&](std::uint32_t threads) {
        if (fork.reductions == nullptr) return;
        reductions::allocate(fork.reductions, nullptr, threads,
                             [this](std::size_t bytes, std::size_t alignment) {
                                 return tasks_.allocate_argument(bytes, alignment);
                             });
    };
    const std::uint32_t size = team_size_for(thread, requested, threads_max);
    // There is one team. Whoever finds it taken does not wait: its holder may wait for the caller.
    if (size == 1 || team_taken_.exchange(true, std::memory_order_acquire)) {
        make_copies(1);
        run_alone(thread, fork);
        return 1;
    }
    make_copies(size);
    fork_ = fork;
    run_team(thread, size);
    team_taken_.store(false, std::memory_order_release);  // pairs with the exchange above
    return size;
}

void RuntimeCore::run_alone(ThreadState& thread, const Fork& fork) noexcept {
    Frame frame;
    frame.parent = thread.frame;
    frame.icvs = icvs();
    frame.reductions = fork.reductions;
    frame.place.level = thread.frame->place.level + 1;
    frame.place.active_level = thread.frame->place.active_level;
    thread.frame = &frame;
    if (fork.has_loop) loop_start(fork.loop);
    call_program(fork.function, fork.data);
    barrier();
    release_implicit(frame);
    thread.frame = frame.parent;
}

void RuntimeCore::run_team(ThreadState& thread, std::uint32_t team_size) noexcept {
    const Frame& outer = *thread.frame;
    trace("omp.fork", team_size, sequence_);
    fork_.place = {0, team_size, outer.place.level + 1, outer.place.active_level + 1};
    fork_.icvs = icvs();
    if (environment_.levels > 1)
        fork_.icvs.threads =
            environment_.threads_by_level[std::min(outer.place.level + 1, environment_.levels - 1)];
    // The numbers go on from region to region: the last thread to leave a slot may do so late.
    fork_.sequence = sequence_;
    synchronizes_at(SyncKind::region, code_of(fork_));
    if (parts_.flush_streams != nullptr && link_ != nullptr) parts_.flush_streams();
    if (parts_.publish_process != nullptr && nodes_of(team_size) > 1)
        fork_.process = parts_.publish_process();
    const std::uint32_t join_phase = join_.phase();
    const auto start = [this, team_size] {
        if (link_ != nullptr && nodes_of(team_size) > 1) link_->fork(fork_, nodes_of(team_size));
        if (link_ != nullptr) tasks_.exchange()->begin_region(link_->region(), nodes_of(team_size));
        start_members();
    };
    if (link_ != nullptr)
        on_runtime_stack(start);
    else
        start();
    Frame* const parent = thread.frame;
    enter_region(thread);
    thread.region.parent = parent;
    run_function(fork_);
    sequence_ = thread.region.sequence;
    thread.in_region = false;
    trace("omp.join", join_phase);
    if (link_ != nullptr) {
        join_nodes(thread, nodes_of(team_size) > 1);
    } else {
        if (join_.arrive()) join_.open(patience_);
        work_until(thread, nullptr, [&] { return join_.phase() != join_phase && tasks_.quiet(); });
    }
    release_implicit(thread.region);
    thread.frame = parent;
}

std::uint32_t RuntimeCore::nodes_of(std::uint32_t team_size) const noexcept {
    return TeamShape{team_size, nodes_}.nodes_used();
}

std::uint32_t RuntimeCore::local_members(std::uint32_t team_size) const noexcept {
    return TeamShape{team_size, nodes_}.members_of(node_);
}

void RuntimeCore::start_members() noexcept {
    const std::uint32_t members = local_members(fork_.place.team_size);
    if (link_ == nullptr && threads_.size() < members) grow_pool(members);
    if (link_ == nullptr && pool_.size() + 1 < members) grow_pool(members);
    if (link_ != nullptr && threads_.size() < members) grow_node(members);
    barrier_.set_members(members);
    join_.set_members(members);
    regions_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t t = 1; t < members; ++t) threads_[t]->start.advance(patience_);
    if (link_ == nullptr && tasks_.has_waiting()) tasks_.ring();
}

void RuntimeCore::enter_region(ThreadState& thread) noexcept {
    Frame& frame = thread.region;
    release_implicit(frame);
    frame.parent = nullptr;
    frame.place = fork_.place;
    frame.place.thread =
        TeamShape{fork_.place.team_size, nodes_}.first_of(node_) + thread.local_thread;
    frame.icvs = fork_.icvs;
    frame.sequence = fork_.sequence;
    frame.reductions = fork_.reductions;
    thread.frame = &frame;
    thread.in_region = true;
    thread.region_entered = regions_.load(std::memory_order_relaxed);
    if (fork_.has_loop) loop_start(fork_.loop);
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
        if (!standing.arrived && arrive(standing, join_)) join_.open(patience_);
        TaskPool::Waiting waiting{tasks_};
        const Lookout lookout{tasks_, thread.events_seen};
        const auto here = [&] { return join_.phase() != standing.phase && tasks_.quiet(); };
        const bool over = link_->await(here, lookout.distraction()) &&
                          (!several || link_->join(lookout.distraction()));
        if (!over) waiting.will_attend();
        return over;
    };
    link_->in_steps(step, [this, &thread] { help(thread); });
}

void RuntimeCore::work(std::uint32_t local_thread) noexcept {
    ThreadState& thread = *threads_[local_thread];
    this_thread().omp = &thread;
    while (link_ != nullptr ? await_region(thread) : await_region_here(thread)) {
        enter_region(thread);
        run_function(fork_);
    }
    thread.frame = &thread.base;
}

bool RuntimeCore::await_region_here(ThreadState& thread) noexcept {
    if (thread.in_region && join_.arrive()) {
        join_.open(patience_);
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
        if (!standing.arrived && arrive(standing, join_) && node_ == 0) join_.open(patience_);
        if (standing.last && node_ != 0) {
            // It may have tasks of those it waits for, so it goes on executing them.
            const auto joins = [this] { return tasks_.quiet() && link_->children_have_come(); };
            if (!link_->await_region(joins, distraction)) return TeamLink::Called::elsewhere;
            leave_region(thread);
        }
        thread.in_region = false;
    }
    if (thread.local_thread == 0) return await_region_as_leader(distraction);
    const auto starts = [&] { return thread.start.value() != thread.start_seen; };
    if (!link_->await_region(starts, distraction)) return TeamLink::Called::elsewhere;
    ++thread.start_seen;
    return over_.load() ? TeamLink::Called::end : TeamLink::Called::region;
}

/// On other nodes the last thread speaks for all; node 0's initial thread waits itself. It flushes
/// for all too: an unsynchronized std::cout bears one thread at a time.
void RuntimeCore::leave_region(ThreadState&) noexcept {
    if (parts_.flush_streams != nullptr) parts_.flush_streams();
    link_->arrive_at_join();
    join_.open(patience_);
}

TeamLink::Called RuntimeCore::await_region_as_leader(Distraction distraction) noexcept {
    const TeamLink::Called called = link_->await_fork(&fork_, distraction);
    if (called == TeamLink::Called::handlers || called == TeamLink::Called::elsewhere)
        return called;
    if (called == TeamLink::Called::end) {
        over_.store(true);
        for (std::uint32_t t = 1; t < threads_.size(); ++t) threads_[t]->start.advance(patience_);
        return called;
    }
    const std::uint32_t members = nodes_of(fork_.place.team_size);
    link_->set_members(members);
    tasks_.exchange()->begin_region(link_->region(), members);
    if (parts_.apply_process != nullptr && fork_.process.bytes != nullptr)
        parts_.apply_process(fork_.process);
    start_members();
    return called;
}

void RuntimeCore::quit() noexcept {
    over_.store(true);
    if (link_ != nullptr) on_runtime_stack([this] { link_->send_quit(); });
    for (std::uint32_t t = 1; t < threads_.size(); ++t) threads_[t]->start.advance(patience_);
    if (link_ == nullptr) tasks_.ring();
}

void RuntimeCore::barrier() noexcept {
    ThreadState& thread = self();
    const Frame& frame = *thread.frame;
    if (frame.place.team_size == 1) {
        Task* const task = frame.implicit;
        if (task == nullptr) return;
        return work_until(thread, task, [task] { return task->descendants.count == 0; });
    }
    trace("omp.barrier", frame.place.thread, frame.sequence);
    if (link_ == nullptr) {
        const std::uint32_t phase = barrier_.phase();
        if (!barrier_.arrive())
            return work_until(thread, nullptr, [&] { return barrier_.phase() != phase; });
        if (!tasks_.quiet()) work_until(thread, nullptr, [this] { return tasks_.quiet(); });
        barrier_.open(patience_);
        if (tasks_.has_waiting()) tasks_.ring();
        return;
    }
    thread.standing = {};
    const bool several = nodes_of(frame.place.team_size) > 1;
    const auto step = [this, &thread, several] {
        TaskPool::Waiting waiting{tasks_};
        const bool through = barrier_step(thread, several);
        if (!through) waiting.will_attend();
        return through;
    };
    link_->in_steps(step, [this, &thread] { help(thread); });
}

bool RuntimeCore::barrier_step(ThreadState& thread, bool several) noexcept {
    Standing& standing = thread.standing;
    const Lookout lookout{tasks_, thread.events_seen};
    const Distraction distraction = lookout.distraction();
    if (!arrive(standing, barrier_))
        return link_->await([&] { return barrier_.phase() != standing.phase; }, distraction);
    if (!standing.begun) {
        if (!link_->await([this] { return tasks_.quiet(); }, distraction)) return false;
        if (several) link_->begin_barrier();
        standing.begun = true;
    }
    if (several && !link_->finish_barrier(distraction)) return false;
    barrier_.open(patience_);
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

/// One of several nodes: a team needs more threads than there were at the start.
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
