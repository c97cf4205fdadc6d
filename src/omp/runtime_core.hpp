// SPDX-License-Identifier: BSD-3-Clause
// Role: the one implementation of Runtime: teams of threads over one node or several.
// Invariant: one team, `everywhere_`, is spread over all nodes (team_shape.hpp). It is forked by
// the initial thread, or by one that the program has made on node 0, which then is thread 0, and
// only outside an active region. The team of a region inside a region is on the node of its leader.
// With `link_` null this is the whole job, and nothing but threads, gates and plain words is used.
//
// In reading order: runtime.cpp (making it, queries), runtime_region.cpp (fork, join, barrier),
// runtime_stay.cpp (where a region runs), runtime_inner.cpp (regions inside regions),
// runtime_cancel.cpp, runtime_sharing.cpp (loops, single, ordered), runtime_reduce.cpp,
// runtime_watch.cpp, runtime_record.cpp, runtime_tasks.cpp, runtime_locks.cpp, runtime_halves.cpp
// (what some compilers ask for in two halves).
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "omp/loop/word_store.hpp"
#include "omp/omp.hpp"
#include "omp/task/task_pool.hpp"
#include "omp/team/busy_time.hpp"
#include "omp/team/gate.hpp"
#include "omp/team/regions_together.hpp"
#include "omp/team/small_regions.hpp"
#include "omp/team/team.hpp"
#include "omp/team/team_link.hpp"
#include "omp/team/thread_state.hpp"
#include "omp/thread_part.hpp"

namespace hiroba::omp {

class RuntimeCore final : public Runtime {
public:
    RuntimeCore(const Parts& parts, std::unique_ptr<TeamLink> link,
                std::unique_ptr<SegmentWords> segment_words,
                std::unique_ptr<SegmentWords> segment_progress);
    ~RuntimeCore() override;
    void attach() override;

    void work(std::uint32_t local_thread) noexcept override;
    void become_initial_thread() noexcept override;
    void quit() noexcept override;
    void count_program_threads(int change) noexcept override;

    void parallel(OutlinedFunction function, void* data, std::uint32_t threads) noexcept override;
    void parallel_loop(OutlinedFunction function, void* data, std::uint32_t threads,
                       const Loop& loop, std::uint32_t threads_max) noexcept override;
    std::uint32_t parallel_reductions(OutlinedFunction function, void* data, std::uint32_t threads,
                                      std::uintptr_t* reductions) noexcept override;
    void parallel_at(const void* code, OutlinedFunction function, void* data,
                     std::uint32_t threads) noexcept override;
    void begin_region(OutlinedFunction function, void* data, std::uint32_t threads,
                      const Loop* loop, std::uint32_t threads_max) noexcept override;
    void end_region() noexcept override;
    void begin_alone() noexcept override;
    void end_alone() noexcept override;
    void want_binding(ProcBind policy) noexcept override { self().wanted_binding = policy; }
    Binding binding() noexcept override { return self().frame->binding; }
    void barrier() noexcept override;
    void flush() noexcept override;
    bool cancel(Cancel what) noexcept override;
    bool cancellation_point(Cancel what) noexcept override;
    bool barrier_cancel() noexcept override;
    void run_apart(OutlinedFunction function, void* data,
                   std::uint32_t thread_limit) noexcept override;
    void league(OutlinedFunction function, void* data, std::uint32_t teams,
                std::uint32_t thread_limit) noexcept override;
    bool next_team(std::uint32_t teams, std::uint32_t thread_limit, bool first) noexcept override;

    void loop_start(const Loop& loop) noexcept override;
    bool loop_next(std::uint64_t* first, std::uint64_t* end) noexcept override;
    bool loop_next_closed(LoopChunk* chunk) noexcept override;
    void loop_end(bool wait) noexcept override;
    bool loop_end_cancel() noexcept override;
    void* loop_memory(std::size_t bytes) noexcept override;
    void doacross_start(std::span<const std::uint64_t> counts, Schedule schedule,
                        std::uint64_t chunk) noexcept override;
    void doacross_post(const std::uint64_t* at) noexcept override;
    void doacross_wait(const std::uint64_t* at) noexcept override;
    std::size_t doacross_dimensions() noexcept override {
        return self().frame->doacross.dimensions();
    }
    void ordered_start() noexcept override;
    void ordered_end() noexcept override;
    void task(const NewTask& wanted) noexcept override;
    void* allocate_for_task(std::size_t bytes, std::size_t alignment) noexcept override {
        return tasks_.allocate_argument(bytes, alignment);
    }
    void free_for_task(void* block) noexcept override { tasks_.free_argument(block); }
    void begin_task(SuspendedTask* outer, bool final) noexcept override;
    void end_task(const SuspendedTask& outer) noexcept override;
    void task_wait() noexcept override;
    void task_wait_for(std::vector<Dependence> dependences) noexcept override;
    void task_yield() noexcept override;
    void taskgroup_start() noexcept override;
    void taskgroup_end() noexcept override;
    void task_loop(NewTask& wanted, const TaskLoop& loop) noexcept override;
    std::uintptr_t* task_reductions() noexcept override;
    std::uintptr_t* group_reductions() noexcept override;
    void register_reductions(std::uintptr_t* data) noexcept override;
    void unregister_reductions(std::uintptr_t* data) noexcept override;
    void start_shared_reductions(std::uintptr_t* data) noexcept override;
    void end_shared_reductions(bool cancelled) noexcept override;
    void remap_reductions(std::span<void*> pointers, std::size_t originals) noexcept override;
    bool in_final() noexcept override;
    bool in_explicit_task() noexcept override;
    void fulfill_event(std::uint64_t event) noexcept override;
    TaskCounts task_counts() const noexcept override;

    bool single_start() noexcept override;
    void* single_copy_start() noexcept override;
    void single_copy_end(void* data) noexcept override;
    void* pass_on(void* data, bool gives) noexcept override;

    void lock(std::uint64_t key) noexcept override;
    bool try_lock(std::uint64_t key) noexcept override;
    void unlock(std::uint64_t key) noexcept override;
    void forget_lock(std::uint64_t key) noexcept override;
    bool reduce(std::uint64_t key, void* data, CombineFunction combine) noexcept override;
    bool announce_term(const void* code, const void* term) noexcept override;
    void withdraw_term() noexcept override;
    std::uint32_t lock_nested(std::uint64_t key) noexcept override;
    std::uint32_t try_lock_nested(std::uint64_t key) noexcept override;
    void unlock_nested(std::uint64_t key) noexcept override;

    TeamPosition place() noexcept override { return self().frame->place; }
    bool is_in_region() noexcept override { return self().frame->place.level != 0; }
    bool is_initial_thread() noexcept override { return self().initial; }
    Icvs& icvs() noexcept override;
    Environment& environment() noexcept override { return environment_; }
    int ancestor_thread(int level) noexcept override;
    int team_size_at(int level) noexcept override;
    std::uint32_t thread_limit() noexcept override;
    std::uint32_t processors() noexcept override { return processors_; }
    void forget_thread() noexcept override;
    std::uint64_t regions_taken_part() const noexcept override { return regions_.load(); }
    const StayedRegions& stayed_regions() const noexcept override { return leading_.stayed; }

private:
    ThreadState& self() noexcept;
    ThreadState& meet_foreign_thread() noexcept;

    /// Whether its regions may have several threads: the initial thread, or the program's own.
    bool may_lead(const ThreadState& thread) const noexcept;
    std::uint32_t team_size_for(const ThreadState& thread, std::uint32_t requested,
                                std::uint32_t threads_max) noexcept;
    std::uint32_t run(const Fork& fork, std::uint32_t requested,
                      std::uint32_t threads_max) noexcept;
    void run_alone(ThreadState& thread, const Fork& fork) noexcept;
    enum class Place : std::uint8_t { any, spread, here };
    // Where regions run (runtime_stay.cpp).
    Place place_of_all() noexcept;
    bool choose(const void* code, std::uint32_t size, std::uint64_t now_ns, bool* alone) noexcept;
    void note_stayed(const void* code, std::uint64_t took_ns) noexcept;
    static void note_kept(const ThreadState& thread) noexcept;
    MemoryEvents memory_events() const noexcept;
    /// With the spread team taken: whether a team may stay on this node, with all its threads.
    bool may_stay(const Fork& fork, std::uint32_t team_size) noexcept;
    /// Spread or not, by what either has taken.
    std::uint32_t run_measured(ThreadState& thread, const Fork& fork, std::uint32_t size) noexcept;
    std::uint32_t run_team(ThreadState& thread, const Fork& wanted,
                           std::uint32_t team_size) noexcept;
    Icvs icvs_inside(const Frame& outer) noexcept;

    // Regions inside regions (runtime_inner.cpp).
    /// Runs the region on threads of this node. @return how many, at most `wanted`
    void start_team(ThreadState& thread, const Fork& fork, std::uint32_t team_size) noexcept;
    void finish_team(ThreadState& thread) noexcept;
    std::uint32_t run_inner(ThreadState& thread, const Fork& fork, std::uint32_t wanted) noexcept;
    std::uint32_t run_staying(ThreadState& thread, const Fork& fork, std::uint32_t size) noexcept;
    void begin_with_members(Fork& fork, std::uint32_t team_size) noexcept;
    Team* start_inner(ThreadState& thread, const Fork& fork, std::uint32_t wanted) noexcept;
    bool is_in_team(const Frame& frame) const noexcept;
    std::uint32_t helpers_allowed(const Frame& frame, std::uint32_t limit) noexcept;
    std::uint32_t contention_limit() noexcept;
    Team& take_team(const Frame& outer, std::uint32_t wanted, std::uint32_t limit) noexcept;
    void give_team_back(Team& team) noexcept;
    void start_helpers(Team& team) noexcept;
    void finish_inner(ThreadState& thread, Team& team) noexcept;
    void tell_of_node_limit(std::uint32_t wanted, std::uint32_t has) noexcept;

    // Cancellation (runtime_cancel.cpp).
    static bool is_cancelled(const Frame& frame) noexcept {
        return frame.team != nullptr ? frame.team->cancellation.region() : frame.cancelled;
    }
    void cancel_team(Frame& frame) noexcept;
    void cancel_work(Frame& frame) noexcept;
    void cancel_group(Frame& frame) noexcept;
    bool is_group_cancelled(const Frame& frame) noexcept;
    bool is_discarded(const Frame& frame, const Task& task) noexcept;
    static void clean_after_cancellation(Team& team) noexcept;
    std::uint32_t nodes_of(std::uint32_t team_size) const noexcept;
    std::uint32_t local_members(std::uint32_t team_size) const noexcept;
    /// Sets up the frames of this node's members and lets them start, except the caller.
    void start_members() noexcept;
    void enter_region(ThreadState& thread) noexcept;
    /// What a thread that the calling one makes would have from it.
    Inheritance inheritance() const noexcept;
    /// The thread is in the team: it becomes as one that its leader made.
    void inherit(ThreadState& thread, const Team& team) noexcept;
    /// `member`: its number among this node's.
    void enter_frame(Frame& frame, Team& team, std::uint32_t thread, std::uint32_t member) noexcept;
    ProcBind policy_of(ThreadState& thread) noexcept;
    void deal_out_members(Team& team, std::uint32_t members) noexcept;
    void bind(ThreadState& thread) noexcept;
    static void plan_to_show(Fork& fork, const ThreadState& leader) noexcept;
    void show_affinity(ThreadState& thread, PoolKind pool, bool in_any_case = false) noexcept;
    void enter_alone(ThreadState& thread) noexcept;
    void make_copies(const Fork& fork, std::uint32_t threads) noexcept;
    // For recordings.
    std::uint64_t region_number() const noexcept;
    static std::uint64_t meeting_of(const Frame& frame) noexcept;
    void record_entry(const Frame& frame, bool spread) const noexcept;
    void record_arrival(const ThreadState& thread) const noexcept;
    void record_end(const ThreadState& thread) const noexcept;
    std::uint64_t count_lock() noexcept;
    void record_atomics(const ThreadState& thread) const noexcept;
    static bool arrive(Standing& standing, LocalBarrier& barrier) noexcept;
    void join_nodes(ThreadState& thread, bool several) noexcept;
    /// Arrives at the end of the former region, if any, and waits for the next. False: over.
    bool await_region(ThreadState& thread) noexcept;
    bool await_region_here(ThreadState& thread) noexcept;
    TeamLink::Called await_region_step(ThreadState& thread) noexcept;
    TeamLink::Called await_region_as_leader(Distraction distraction) noexcept;
    void leave_region(ThreadState& thread) noexcept;
    void pass_barrier(ThreadState& thread, Frame& frame) noexcept;
    void barrier_here(ThreadState& thread, Team& team) noexcept;
    bool barrier_step(ThreadState& thread, bool several) noexcept;
    bool is_spread(const Frame& frame) const noexcept {
        return link_ != nullptr && frame.team == &everywhere_;
    }
    bool crosses_nodes(const Frame& frame) const noexcept {
        return is_spread(frame) && nodes_of(frame.place.team_size) > 1;
    }
    void tell_of_limit(std::uint32_t wanted, std::uint32_t most) noexcept;
    void add_thread_states(std::uint32_t threads);
    std::uint32_t threads_max_here() const noexcept;
    /// Makes threads until there are at least so many on this node.
    void make_threads(std::uint32_t threads);
    void grow_node(std::uint32_t threads);
    void grow_pool(std::uint32_t threads);
    static void* pool_thread(void* argument) noexcept;

    /// The cancellation for which waits in constructs of the frame's team give up.
    static const Cancellation* cancellation_of(const Frame& frame) noexcept {
        return frame.team != nullptr ? &frame.team->cancellation : nullptr;
    }
    static Workshare join_construct(Frame& frame) noexcept;
    /// Behind a construct without a barrier, in which threads of other nodes may have stored.
    void note_lost(ThreadState& thread, std::uint64_t sequence) noexcept;
    static void forget_lost(ThreadState& thread) noexcept;
    void acquire_lost(ThreadState& thread) noexcept;
    friend void acquire_lost_singles() noexcept;
    /// Before a thread that lacks them synchronizes.
    static void acquire_lost() noexcept {
        if (thread_part().lacks_stores) [[unlikely]]
            acquire_lost_singles();
    }
    NodeShare node_share(const Frame& frame) noexcept;
    /// Calls make() on one thread of the team, and returns what it returned on all threads, which
    /// then see what it did. `share` is to be left.
    template <class Make>
    void* make_for_all(Frame& frame, Workshare& share, Make&& make) noexcept;

    // Tasks (runtime_tasks.cpp).
    Task& current_task(Frame& frame) noexcept;
    void release_implicit(Frame& frame) noexcept;
    void execute(ThreadState& thread, Task& task) noexcept;
    static void call_body(const Task& task) noexcept;
    void end_body(Task& task) noexcept;
    void tell_of_end(Task& task) noexcept;
    /// Tells the observer of a task without a descriptor. @return what the observer keeps
    void* begin_inline(const NewTask& wanted) noexcept;
    void depend_and_tell(Task& task, std::vector<Dependence>& dependences) noexcept;
    Task& make_task(Frame& frame, const NewTask& wanted, bool deferred) noexcept;
    std::uint64_t task_handle(const Task& task) const noexcept {
        return TaskHandle::make(NodeId{node_}, task.index, task.serial).raw;
    }
    void* copy_argument(const NewTask& wanted) noexcept;
    void execute_inline(Frame& frame, const NewTask& wanted) noexcept;
    void run_undeferred(ThreadState& thread, Task& task, const NewTask& wanted) noexcept;
    /// Executes descendants of `of`, or any of the thread's team if it is null, until done(),
    /// which is asked under the books' latch, and also without it if `of` is null.
    template <class Done>
    void work_until(ThreadState& thread, Task* of, Done&& done) noexcept {
        using Plain = std::remove_reference_t<Done>;
        const auto holds = [](void* d) { return (*static_cast<Plain*>(d))(); };
        work_until(thread, of,
                   Condition{holds, const_cast<void*>(static_cast<const void*>(&done))});
    }
    struct Condition {
        bool (*holds)(void*);
        void* context;
        bool operator()() const { return holds(context); }
    };
    void work_until(ThreadState& thread, Task* of, Condition done) noexcept;
    /// When a thread asks other nodes again for what it waits for. Anew when it has executed a
    /// task.
    struct AskPace {
        std::uint64_t patience_ns = 500'000, next_ns = 0;
        std::vector<std::uint64_t> asked;  ///< handles, sorted
        bool asks_now(const std::vector<TaskHandle>& away);
    };
    void wait_for_work(Task* of, std::uint64_t seen, AskPace& pace, Condition done) noexcept;
    /// The team any of whose tasks it may execute: that of the region it is in, or was in last, if
    /// that is not over. Null: none. Under the books' latch.
    TaskTeam* tasks_of(const ThreadState& thread) const noexcept {
        const Team* const team = thread.frame->team;
        if (team == nullptr) return nullptr;
        const bool is_member = team != &everywhere_ ||
                               thread.region_entered == regions_.load(std::memory_order_acquire);
        return is_member ? team->tasks : nullptr;
    }
    /// Executes tasks while there are any to be had.
    void help(ThreadState& thread) noexcept;
    /// Tells whether a thread leaves a barrier or a join for a while, for tasks; or a barrier for
    /// good, because it is cancelled.
    struct Lookout {
        const TaskPool& tasks;
        std::uint64_t seen;
        const Cancellation* cancellation = nullptr;
        Distraction distraction() const noexcept {
            return {[](const void* self) noexcept {
                        const auto& here = *static_cast<const Lookout*>(self);
                        return here.tasks.stirs(here.seen) ||
                               (here.cancellation != nullptr && here.cancellation->region());
                    },
                    this};
        }
    };

    void await_offer(const ReductionOffer& own) noexcept;
    void apply_terms() noexcept;
    void start_watch();
    void watch_regions() noexcept;
    std::uint32_t* lock_at(std::uint64_t key) noexcept;
    static void release_for_lock(void* runtime) noexcept;
    static bool begin_standstill(void* runtime) noexcept;
    static void end_standstill(void* runtime) noexcept;
    static void learn_unread(void* link) noexcept;
    bool is_alone_here() const noexcept;
    const void* holder(Frame& frame) noexcept;

    Parts parts_;
    Environment environment_;
    std::unique_ptr<TeamLink> link_;  ///< null on one node
    std::unique_ptr<SegmentWords> segment_words_, segment_progress_;
    struct PatienceHere : Patience {
        Patience of_crowd;                    ///< while there are more threads than processors,
        std::atomic<bool> is_crowded{false};  ///< by the last team that was started
    };
    PatienceHere patience_;
    TaskPool tasks_;
    std::atomic<std::uint64_t> tasks_executed_{0};
    std::uint32_t node_ = 0, nodes_ = 1, processors_ = 1;

    Team everywhere_;
    struct Leading {
        std::atomic<bool> taken{false};  ///< everywhere_
        BusyTime busy;                   ///< this and what follows: of who has taken it
        SmallRegions small_regions{};
        RegionsTogether regions_together{};
        Place place = Place::any;  ///< of all regions, once threads may be told apart
        bool computes_known = false;
        FloatingPoint computes = 0;  ///< the leader, at the first region
        std::uint64_t end_ns = 0;    ///< of the last region
        MemoryEvents events{};       ///< up to there
        StayedRegions stayed{};
        std::uint64_t turn = 1;  ///< for tests
        MadeThreads made{};      ///< alone, by its regions
    } leading_;
    std::atomic<bool> told_of_limit_{false};
    std::vector<std::unique_ptr<ThreadState>> threads_;  ///< by local number; never moves
    Latch helpers_latch_;             ///< the next four, and making more threads inside a region
    std::uint32_t members_here_ = 1;  ///< of everywhere_: threads 0, 1, ... of this node
    std::uint32_t helping_ = 0;
    std::vector<std::unique_ptr<Team>> teams_;
    std::vector<Team*> free_teams_;
    std::vector<pthread_t> pool_;
    std::atomic<bool> over_{false};
    std::atomic<std::uint64_t> regions_{0};
    std::atomic<std::uint64_t> locks_recorded_{0};  ///< taken here, while that is recorded
    std::thread watch_;  ///< of many nodes: watches how long regions last

    struct alignas(cache_line_bytes) OwnLock {
        std::uint32_t word = 0;
    };
    std::array<OwnLock, 8> own_locks_{};
};

}  // namespace hiroba::omp
