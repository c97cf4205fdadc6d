// SPDX-License-Identifier: BSD-3-Clause
// Role: a runtime with a tool: tells it what the program asks for, and passes it on.
// Invariant: without a tool there is none of this, and entry points call the core itself. The core
// tells it as a TaskObserver of events that only the core knows (a task begins, a thread ends).
// docs/layers/ompt.md says which events there are, and where threads of other nodes tell theirs.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/fatal.hpp"
#include "omp/loop/iteration_space.hpp"
#include "omp/omp.hpp"
#include "omp/tool/task_observer.hpp"
#include "omp/tool/tool.hpp"

namespace hiroba::omp {

class ToolRuntime final : public Runtime, public TaskObserver {
public:
    ToolRuntime(std::unique_ptr<Tool> tool, std::uint32_t nodes) noexcept
        : tool_(std::move(tool)), nodes_(nodes) {}
    /// Called once, before anything else.
    void take_core(std::unique_ptr<Runtime> core) noexcept { core_ = std::move(core); }

    // Calls of which the tool hears: tool_regions.cpp.
    void work(std::uint32_t local_thread) noexcept override;
    void parallel(OutlinedFunction function, void* data, std::uint32_t threads) noexcept override;
    void parallel_loop(OutlinedFunction function, void* data, std::uint32_t threads,
                       const Loop& loop, std::uint32_t threads_max) noexcept override;
    std::uint32_t parallel_reductions(OutlinedFunction function, void* data, std::uint32_t threads,
                                      std::uintptr_t* reductions) noexcept override;
    void parallel_at(const void* code, OutlinedFunction function, void* data,
                     std::uint32_t threads) noexcept override;
    void begin_alone() noexcept override;
    void end_alone() noexcept override;
    void league(OutlinedFunction function, void* data, std::uint32_t teams,
                std::uint32_t thread_limit) noexcept override;
    void forget_thread() noexcept override;
    void quit() noexcept override;
    void finish_tool(bool threads_end) noexcept override;
    void note_caller(const void* code) noexcept override;
    int control_tool(int command, int modifier, void* argument) noexcept override;

    // tool_constructs.cpp.
    void barrier() noexcept override;
    bool barrier_cancel() noexcept override;
    void flush() noexcept override;
    bool cancel(Cancel what) noexcept override;
    bool cancellation_point(Cancel what) noexcept override;
    void loop_start(const Loop& loop) noexcept override;
    bool loop_next(std::uint64_t* first, std::uint64_t* end) noexcept override;
    bool loop_next_closed(LoopChunk* chunk) noexcept override;
    void loop_end(bool wait) noexcept override;
    bool loop_end_cancel() noexcept override;
    void doacross_start(std::span<const std::uint64_t> counts, Schedule schedule,
                        std::uint64_t chunk) noexcept override;
    void doacross_post(const std::uint64_t* at) noexcept override;
    void doacross_wait(const std::uint64_t* at) noexcept override;
    void ordered_start() noexcept override;
    void ordered_end() noexcept override;
    void task(const NewTask& wanted) noexcept override;
    void task_wait() noexcept override;
    void task_wait_for(std::vector<Dependence> dependences) noexcept override;
    void task_yield() noexcept override;
    void taskgroup_start() noexcept override;
    void taskgroup_end() noexcept override;
    void task_loop(NewTask& wanted, const TaskLoop& loop) noexcept override;
    void end_shared_reductions(bool cancelled) noexcept override;
    bool single_start() noexcept override;
    void* single_copy_start() noexcept override;
    void single_copy_end(void* data) noexcept override;
    void* pass_on(void* data, bool gives) noexcept override;
    void lock(std::uint64_t key) noexcept override;
    bool try_lock(std::uint64_t key) noexcept override;
    void unlock(std::uint64_t key) noexcept override;
    std::uint32_t lock_nested(std::uint64_t key) noexcept override;
    std::uint32_t try_lock_nested(std::uint64_t key) noexcept override;
    void unlock_nested(std::uint64_t key) noexcept override;
    void tell_tool(ToolReport what, std::uint64_t value) noexcept override;
    void tell_error(bool fatal, const char* text, std::size_t length) noexcept override;

    // tool_targets.cpp.
    void run_apart(OutlinedFunction function, void* data, std::uint32_t limit) noexcept override;
    void tell_target_data(TargetData what, bool nowait) noexcept override;

    // TaskObserver: tool_tasks.cpp.
    void thread_ends() noexcept override;
    void* task_created(const NewTask& wanted, bool deferred, bool final) noexcept override;
    void task_waits_for(void* before) noexcept override;
    void tell_waits(void* kept) noexcept override;
    void task_begins(void*& kept, bool is_target, void* stack) noexcept override;
    void task_ends(void* kept, bool discarded) noexcept override;
    void task_ended_elsewhere(void* kept) noexcept override;
    void task_fulfilled(void* kept) noexcept override;

    // Its threads would not be told of.
    void begin_region(OutlinedFunction, void*, std::uint32_t, const Loop*,
                      std::uint32_t) noexcept override {
        die(exit_environment,
            "code of gcc before 4.9 has regions that a tool (OMPT) cannot hear of");
    }
    void end_region() noexcept override { core_->end_region(); }

    // The rest is the core's.
    void attach() override { core_->attach(); }
    void become_initial_thread() noexcept override { core_->become_initial_thread(); }
    void count_program_threads(int change) noexcept override {
        core_->count_program_threads(change);
    }
    void want_binding(ProcBind policy) noexcept override { core_->want_binding(policy); }
    Binding binding() noexcept override { return core_->binding(); }
    bool next_team(std::uint32_t teams, std::uint32_t limit, bool first) noexcept override {
        return core_->next_team(teams, limit, first);
    }
    void* loop_memory(std::size_t bytes) noexcept override { return core_->loop_memory(bytes); }
    std::size_t doacross_dimensions() noexcept override { return core_->doacross_dimensions(); }
    void* allocate_for_task(std::size_t bytes, std::size_t alignment) noexcept override {
        return core_->allocate_for_task(bytes, alignment);
    }
    void free_for_task(void* block) noexcept override { core_->free_for_task(block); }
    void begin_task(SuspendedTask* outer, bool final) noexcept override {
        core_->begin_task(outer, final);
    }
    void end_task(const SuspendedTask& outer) noexcept override { core_->end_task(outer); }
    bool in_final() noexcept override { return core_->in_final(); }
    bool in_explicit_task() noexcept override { return core_->in_explicit_task(); }
    std::uintptr_t* task_reductions() noexcept override { return core_->task_reductions(); }
    std::uintptr_t* group_reductions() noexcept override { return core_->group_reductions(); }
    void register_reductions(std::uintptr_t* data) noexcept override {
        core_->register_reductions(data);
    }
    void unregister_reductions(std::uintptr_t* data) noexcept override {
        core_->unregister_reductions(data);
    }
    void start_shared_reductions(std::uintptr_t* data) noexcept override {
        core_->start_shared_reductions(data);
    }
    void remap_reductions(std::span<void*> pointers, std::size_t originals) noexcept override {
        core_->remap_reductions(pointers, originals);
    }
    void fulfill_event(std::uint64_t event) noexcept override;
    TaskCounts task_counts() const noexcept override { return core_->task_counts(); }
    void forget_lock(std::uint64_t key) noexcept override { core_->forget_lock(key); }
    bool reduce(std::uint64_t key, void* data, CombineFunction combine) noexcept override {
        return core_->reduce(key, data, combine);
    }
    TeamPosition place() noexcept override { return core_->place(); }
    bool is_in_region() noexcept override { return core_->is_in_region(); }
    bool is_initial_thread() noexcept override { return core_->is_initial_thread(); }
    Icvs& icvs() noexcept override { return core_->icvs(); }
    Environment& environment() noexcept override { return core_->environment(); }
    int ancestor_thread(int level) noexcept override { return core_->ancestor_thread(level); }
    int team_size_at(int level) noexcept override { return core_->team_size_at(level); }
    std::uint32_t thread_limit() noexcept override { return core_->thread_limit(); }
    std::uint32_t processors() noexcept override { return core_->processors(); }
    std::uint64_t regions_taken_part() const noexcept override {
        return core_->regions_taken_part();
    }
    const StayedRegions& stayed_regions() const noexcept override {
        return core_->stayed_regions();
    }

private:
    /// A region's threads are given this instead of the region's data. It lies on the stack of the
    /// thread that meets the region, so that every node reaches it.
    struct Region {
        OutlinedFunction function = nullptr;
        void* data = nullptr;
        std::uint64_t id = 0;
        ToolTeam* team = nullptr;  ///< of the node that meets it
        std::uint32_t node = 0, requested = 0;
        const void* code = nullptr;
        ompt::Work work{};  ///< its threads begin in one
        std::uint64_t count = 0;
    };
    /// While one lives, its thread synchronizes.
    class Synchronizing;
    /// While one lives, its thread is in a target construct.
    class InTarget;
    /// The kind of mutex that the thread waits for, and the state in which it waits.
    struct Exclusion {
        ompt::Mutex kind;
        ompt::State waits;
    };

    /// The calling thread, which is no worker unless it is known; its beginning is told.
    ToolThread* thread() noexcept;
    ToolThread& meet(ompt::Thread kind) noexcept;
    void begin(ToolThread& thread) noexcept;

    static void enter(void* region) noexcept;
    void run_member(const Region& region) noexcept;
    ToolTeam& team_of(const Region& region, ToolThread& thread) noexcept;
    ToolTask& begin_implicit(ToolThread& thread, ToolTeam& team, std::uint32_t number,
                             std::uint32_t size, int flags) noexcept;
    void reach_end(ToolThread& thread) noexcept;
    void end_member(ToolThread& thread) noexcept;
    void begin_parallel(ToolThread& thread, Region& region) noexcept;
    void end_parallel(ToolThread& thread, Region& region) noexcept;
    template <class Run>
    auto with_region(Region region, std::uint32_t threads, Run&& run) noexcept;
    static void enter_team(void* league) noexcept;

    void begin_work(ToolThread& thread, ompt::Work work, std::uint64_t count) noexcept;
    void end_work(ToolThread& thread) noexcept;
    void end_single(ToolThread& thread) noexcept;
    void tell_work(ToolThread& thread, ompt::Work work, ompt::Scope scope,
                   std::uint64_t count) noexcept;
    void tell_dispatch(ToolThread& thread, std::uint64_t first) noexcept;
    void tell_dependences(ToolTask& task, std::span<const Dependence> dependences) noexcept;
    void tell_iteration(ToolThread& thread, const std::uint64_t* at, int kind) noexcept;
    static Exclusion exclusion_at(std::uint64_t key, bool test) noexcept;
    void tell_acquire(ToolThread& thread, Exclusion what, std::uint64_t key) noexcept;
    void tell_acquired(ToolThread& thread, ompt::Mutex kind, std::uint64_t key) noexcept;
    void tell_nested(ToolThread& thread, ompt::Mutex kind, std::uint64_t key,
                     std::uint32_t count) noexcept;

    std::unique_ptr<Tool> tool_;
    std::unique_ptr<Runtime> core_;
    const std::uint32_t nodes_;
    /// The team of a region that another node's thread has met. The leader sets it; other threads
    /// look at it once the region's number is in spread_id_.
    ToolTeam* spread_ = nullptr;
    std::atomic<std::uint64_t> spread_id_{0};
};

/// A runtime, with a tool if there may be one. `lookup` is what the tool is given.
Result<std::unique_ptr<Runtime>> create_runtime(Parts parts, ompt::Lookup lookup);

}  // namespace hiroba::omp
