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
#include "omp/team/team_shape.hpp"

namespace hiroba::omp {

namespace {
/// One node only: more threads than this are not made, whatever the program asks for.
constexpr std::uint32_t pool_threads_max = 4096;

/// Both ends of a region are one place: what its beginning made necessary, and its join.
void run_function(const Fork& fork) noexcept {
    const auto* const place = reinterpret_cast<const void*>(fork.function);
    synchronizes_at(SyncKind::region, place);
    call_program(fork.function, fork.data);
    synchronizes_at(SyncKind::region, place);
}
}  // namespace

std::uint32_t RuntimeCore::team_size_for(const ThreadState& thread, std::uint32_t requested,
                                         std::uint32_t threads_max) noexcept {
    const Frame& frame = *thread.frame;
    const std::uint32_t levels = std::min(frame.icvs.max_active_levels, levels_supported);
    if (requested == 1 || !may_lead(thread) || over_.load(std::memory_order_relaxed) ||
        frame.place.active_level >= levels)
        return 1;
    std::uint32_t threads = requested != 0 ? requested : frame.icvs.threads;
    if (frame.icvs.dynamic) threads = std::min(threads, processors_);
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

void RuntimeCore::parallel_loop(OutlinedFunction function, void* data, std::uint32_t threads,
                                const Loop& loop, std::uint32_t threads_max) noexcept {
    Fork fork;
    fork.function = function;
    fork.data = data;
    fork.has_loop = true;
    fork.loop = loop;
    run(fork, threads, threads_max);
}

void RuntimeCore::run(const Fork& fork, std::uint32_t requested,
                      std::uint32_t threads_max) noexcept {
    ThreadState& thread = self();
    const std::uint32_t size = team_size_for(thread, requested, threads_max);
    // There is one team. Whoever finds it taken does not wait: its holder may wait for the caller.
    if (size == 1 || team_taken_.exchange(true, std::memory_order_acquire)) {
        run_alone(thread, fork);
        return;
    }
    fork_ = fork;
    run_team(thread, size);
    team_taken_.store(false, std::memory_order_release);  // pairs with the exchange above
}

void RuntimeCore::run_alone(ThreadState& thread, const Fork& fork) noexcept {
    Frame frame;
    frame.parent = thread.frame;
    frame.icvs = thread.frame->icvs;
    frame.place.level = thread.frame->place.level + 1;
    frame.place.active_level = thread.frame->place.active_level;
    thread.frame = &frame;
    if (fork.has_loop) loop_start(fork.loop);
    call_program(fork.function, fork.data);
    thread.frame = frame.parent;
}

void RuntimeCore::run_team(ThreadState& thread, std::uint32_t team_size) noexcept {
    const Frame& outer = *thread.frame;
    trace("omp.fork", team_size, sequence_);
    fork_.place = {0, team_size, outer.place.level + 1, outer.place.active_level + 1};
    fork_.icvs = outer.icvs;
    if (environment_.levels > 1)
        fork_.icvs.threads =
            environment_.threads_by_level[std::min(outer.place.level + 1, environment_.levels - 1)];
    // The numbers go on from region to region: the last thread to leave a slot may do so late.
    fork_.sequence = sequence_;
    synchronizes_at(SyncKind::region, reinterpret_cast<const void*>(fork_.function));
    if (parts_.flush_streams != nullptr && link_ != nullptr) parts_.flush_streams();
    if (parts_.publish_process != nullptr && nodes_of(team_size) > 1)
        fork_.process = parts_.publish_process();
    const std::uint32_t join_phase = join_.phase();
    const auto start = [this, team_size] {
        if (link_ != nullptr && nodes_of(team_size) > 1) link_->fork(fork_, nodes_of(team_size));
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
    thread.frame = parent;
    sequence_ = thread.region.sequence;
    thread.in_region = false;
    trace("omp.join", join_phase);
    if (link_ != nullptr)
        join_nodes(thread, nodes_of(team_size) > 1);
    else if (join_.arrive())
        join_.open(patience_);
    else
        join_.wait(join_phase, patience_);
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
}

void RuntimeCore::enter_region(ThreadState& thread) noexcept {
    Frame& frame = thread.region;
    frame.parent = nullptr;
    frame.place = fork_.place;
    frame.place.thread =
        TeamShape{fork_.place.team_size, nodes_}.first_of(node_) + thread.local_thread;
    frame.icvs = fork_.icvs;
    frame.sequence = fork_.sequence;
    thread.frame = &frame;
    thread.in_region = true;
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

void RuntimeCore::join_nodes(ThreadState& thread, bool several) noexcept {
    thread.standing = {};
    link_->in_steps([this, &standing = thread.standing, several] {
        const bool first_time = !standing.arrived;
        if (arrive(standing, join_)) {
            if (first_time) join_.open(patience_);
        } else if (!link_->await([&] { return join_.phase() != standing.phase; })) {
            return false;
        }
        return !several || link_->join();
    });
}

void RuntimeCore::work(std::uint32_t local_thread) noexcept {
    ThreadState& thread = *threads_[local_thread];
    this_thread().omp = &thread;
    const bool quiet = link_ != nullptr;
    for (;;) {
        TeamLink::Called called{};
        const auto wait = [this, &thread, &called] { called = await_region(thread); };
        if (quiet)
            on_runtime_stack(wait);
        else
            wait();
        if (called == TeamLink::Called::end) return;
        if (called == TeamLink::Called::handlers) {
            link_->run_handlers();
            continue;
        }
        enter_region(thread);
        run_function(fork_);
        thread.frame = &thread.base;
    }
}

TeamLink::Called RuntimeCore::await_region(ThreadState& thread) noexcept {
    if (thread.in_region) {
        thread.in_region = false;
        if (join_.arrive()) {
            // On other nodes the last thread speaks for all; node 0's initial thread waits itself.
            // It flushes for all too: an unsynchronized std::cout bears one thread at a time.
            if (node_ != 0) {
                if (parts_.flush_streams != nullptr) parts_.flush_streams();
                link_->arrive_at_join();
            }
            join_.open(patience_);
        }
    }
    if (thread.local_thread == 0) return await_region_as_leader(thread);
    thread.start.pass(thread.start_seen, patience_);
    ++thread.start_seen;
    return over_.load() ? TeamLink::Called::end : TeamLink::Called::region;
}

TeamLink::Called RuntimeCore::await_region_as_leader(ThreadState&) noexcept {
    const TeamLink::Called called = link_->await_fork(&fork_);
    if (called == TeamLink::Called::handlers) return called;
    if (called == TeamLink::Called::end) {
        over_.store(true);
        for (std::uint32_t t = 1; t < threads_.size(); ++t) threads_[t]->start.advance(patience_);
        return called;
    }
    link_->set_members(nodes_of(fork_.place.team_size));
    if (parts_.apply_process != nullptr && fork_.process.bytes != nullptr)
        parts_.apply_process(fork_.process);
    start_members();
    return called;
}

void RuntimeCore::quit() noexcept {
    over_.store(true);
    if (link_ != nullptr) on_runtime_stack([this] { link_->send_quit(); });
    for (std::uint32_t t = 1; t < threads_.size(); ++t) threads_[t]->start.advance(patience_);
}

void RuntimeCore::barrier() noexcept {
    const Frame& frame = *self().frame;
    if (frame.place.team_size == 1) return;
    trace("omp.barrier", frame.place.thread, frame.sequence);
    if (link_ == nullptr) {
        const std::uint32_t phase = barrier_.phase();
        if (barrier_.arrive())
            barrier_.open(patience_);
        else
            barrier_.wait(phase, patience_);
        return;
    }
    ThreadState& thread = self();
    thread.standing = {};
    const bool several = nodes_of(frame.place.team_size) > 1;
    link_->in_steps([this, &standing = thread.standing, several] {
        const bool first_time = !standing.arrived;
        if (!arrive(standing, barrier_))
            return link_->await([&] { return barrier_.phase() != standing.phase; });
        if (several && first_time) link_->begin_barrier();
        if (several && !link_->finish_barrier()) return false;
        barrier_.open(patience_);
        return true;
    });
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
