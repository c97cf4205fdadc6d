// SPDX-License-Identifier: BSD-3-Clause
// Role: the one implementation of Runtime: teams of threads over one node or several.
// Invariant: a team is spread over all nodes (team_shape.hpp). There is one team. It is
// forked by the initial thread, or by one that the program has made on node 0, which then is thread
// 0, and only outside an active region; every other region has one thread. With `link_` null this
// is the whole job, and nothing but threads, gates and plain words is used.
//
// In reading order: runtime.cpp (making it, queries), runtime_region.cpp (fork, join, barrier),
// runtime_sharing.cpp (loops, single, ordered), runtime_locks.cpp.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "omp/loop/word_store.hpp"
#include "omp/omp.hpp"
#include "omp/team/gate.hpp"
#include "omp/team/team_link.hpp"
#include "omp/team/thread_state.hpp"

namespace hiroba::omp {

class RuntimeCore final : public Runtime {
public:
    RuntimeCore(const Parts& parts, std::unique_ptr<TeamLink> link,
                std::unique_ptr<SegmentWords> segment_words);
    ~RuntimeCore() override;
    void attach() override;

    void work(std::uint32_t local_thread) noexcept override;
    void become_initial_thread() noexcept override;
    void quit() noexcept override;
    void count_program_threads(int change) noexcept override;

    void parallel(OutlinedFunction function, void* data, std::uint32_t threads) noexcept override;
    void parallel_loop(OutlinedFunction function, void* data, std::uint32_t threads,
                       const Loop& loop, std::uint32_t threads_max) noexcept override;
    void barrier() noexcept override;

    void loop_start(const Loop& loop) noexcept override;
    bool loop_next(std::uint64_t* first, std::uint64_t* end) noexcept override;
    void loop_end(bool wait) noexcept override;
    void ordered_start() noexcept override;
    void ordered_end() noexcept override;
    bool single_start() noexcept override;
    void* single_copy_start() noexcept override;
    void single_copy_end(void* data) noexcept override;

    void lock(std::uint64_t key) noexcept override;
    bool try_lock(std::uint64_t key) noexcept override;
    void unlock(std::uint64_t key) noexcept override;
    void forget_lock(std::uint64_t key) noexcept override;
    std::uint32_t lock_nested(std::uint64_t key) noexcept override;
    std::uint32_t try_lock_nested(std::uint64_t key) noexcept override;
    void unlock_nested(std::uint64_t key) noexcept override;

    Place place() noexcept override { return self().frame->place; }
    Icvs& icvs() noexcept override { return self().frame->icvs; }
    Environment& environment() noexcept override { return environment_; }
    int ancestor_thread(int level) noexcept override;
    int team_size_at(int level) noexcept override;
    std::uint32_t thread_limit() noexcept override;
    std::uint32_t processors() noexcept override { return processors_; }
    void forget_thread() noexcept override;
    std::uint64_t regions_taken_part() const noexcept override { return regions_.load(); }

private:
    ThreadState& self() noexcept;
    ThreadState& meet_foreign_thread() noexcept;

    /// Whether its regions may have several threads: the initial thread, or the program's own.
    bool may_lead(const ThreadState& thread) const noexcept;
    std::uint32_t team_size_for(const ThreadState& thread, std::uint32_t requested,
                                std::uint32_t threads_max) noexcept;
    void run(const Fork& fork, std::uint32_t requested, std::uint32_t threads_max) noexcept;
    void run_alone(ThreadState& thread, const Fork& fork) noexcept;
    void run_team(ThreadState& thread, std::uint32_t team_size) noexcept;
    std::uint32_t nodes_of(std::uint32_t team_size) const noexcept;
    std::uint32_t local_members(std::uint32_t team_size) const noexcept;
    /// Sets up the frames of this node's members and lets them start, except the caller.
    void start_members() noexcept;
    void enter_region(ThreadState& thread) noexcept;
    static bool arrive(Standing& standing, LocalBarrier& barrier) noexcept;
    void join_nodes(ThreadState& thread, bool several) noexcept;
    /// Arrives at the end of the former region, if any, and waits for the next. False: over.
    TeamLink::Called await_region(ThreadState& thread) noexcept;
    TeamLink::Called await_region_as_leader(ThreadState& thread) noexcept;
    void tell_of_limit(std::uint32_t wanted, std::uint32_t most) noexcept;
    void add_thread_states(std::uint32_t threads);
    void grow_node(std::uint32_t threads);
    void grow_pool(std::uint32_t threads);
    static void* pool_thread(void* argument) noexcept;

    std::uint32_t* lock_at(std::uint64_t key) noexcept;

    Parts parts_;
    Environment environment_;
    std::unique_ptr<TeamLink> link_;  ///< null on one node
    std::unique_ptr<SegmentWords> segment_words_;
    std::unique_ptr<LocalWords> local_words_;
    WordStore* words_;
    Patience patience_;
    std::uint32_t node_ = 0, nodes_ = 1, processors_ = 1;

    Fork fork_;  ///< the present region; written by the leader while all others stand still
    std::uint64_t sequence_ = 0;  ///< number of the next region's first construct; as fork_
    std::atomic<bool> team_taken_{false};
    std::atomic<bool> told_of_limit_{false};
    LocalBarrier barrier_;
    LocalBarrier join_;
    std::vector<std::unique_ptr<ThreadState>>
        threads_;  ///< by local number; moves on one node only
    std::vector<pthread_t> pool_;
    std::atomic<bool> over_{false};
    std::atomic<std::uint64_t> regions_{0};

    struct alignas(cache_line_bytes) OwnLock {
        std::uint32_t word = 0;
    };
    std::array<OwnLock, 8> own_locks_{};
};

}  // namespace hiroba::omp
