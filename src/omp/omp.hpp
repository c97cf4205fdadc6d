// SPDX-License-Identifier: BSD-3-Clause
// Role: the face of the OpenMP runtime: one message-based core under every compiler's entry points.
// Invariant: no object that a thread of another node waits on lies in the program's memory; a
// parallel region costs one synchronization at fork and one at join.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "dsm/sync/interruptions.hpp"
#include "omp/icv/icv.hpp"
#include "omp/loop/loop.hpp"
#include "omp/task/dependences.hpp"
#include "omp/task/task_loop.hpp"
#include "omp/team/cancellation.hpp"
#include "omp/team/made_threads.hpp"
#include "omp/team/stayed_regions.hpp"

namespace hiroba::net {
class Endpoint;
namespace kick {
class Board;
}
}  // namespace hiroba::net
namespace hiroba::dsm {
class LockTable;
class SharedMemory;
class Heap;
class BackgroundFlusher;
}  // namespace hiroba::dsm

namespace hiroba::omp {

using OutlinedFunction = void (*)(void*);
/// Adds what `from` describes to what `into` does.
using CombineFunction = void (*)(void* into, void* from);

class TaskObserver;

/// Locks of the runtime itself; all others are named by an address of the program.
inline constexpr std::uint64_t critical_key = 1, atomic_key = 2, ordered_key = 3, share_key = 4,
                               threadprivate_key = 5, shared_rows_key = 6, kernel_order_key = 7;

/// The process-wide state of node 0 (working directory, ...): numbered, and where it is written in
/// global memory, null when there is nothing to take over.
struct ProcessState {
    std::uint64_t version = 0;
    const void* bytes = nullptr;
};

/// The parts of the runtime. `memory`, `locks` and `heap` are null on one node.
struct Parts {
    net::Endpoint* endpoint = nullptr;
    dsm::SharedMemory* memory = nullptr;
    dsm::LockTable* locks = nullptr;
    dsm::Heap* heap = nullptr;
    net::kick::Board* board = nullptr;  ///< what carries news where peers are mapped; may be null
    dsm::BackgroundFlusher* flusher =
        nullptr;                         ///< told when a region runs on several nodes; may be null
    std::uint32_t threads_per_node = 1;  ///< 0, one node only: as many as processors it may use
    /// Several nodes: what start_thread() may be called for, and what starts local thread `t` in
    /// work(t). A team that needs more threads than there were at first has its nodes grow.
    std::uint32_t threads_per_node_max = 0;
    /// Where regions run: over all nodes; on node 0 alone where that takes less time; or now there,
    /// now here, for tests.
    enum class Regions : std::uint8_t { spread, best, turns } regions = Regions::spread;
    void (*start_thread)(std::uint32_t local_thread) = nullptr;
    void (*show_affinity)() = nullptr;  ///< tells where the calling thread runs; may be null
    void (*flush_streams)() = nullptr;  ///< writes out stdout of this process (C, Fortran)
    /// Node 0, before a region of several nodes; the others, before their threads run it. Maybe
    /// null.
    ProcessState (*publish_process)() noexcept = nullptr;
    void (*apply_process)(const ProcessState& state) noexcept = nullptr;
    InheritanceHooks inheritance = {};  ///< of threads, on several nodes
    /// Ends this process as after work(), from any thread: the program is over in the middle of a
    /// region. Null: _exit(0).
    void (*leave)() = nullptr;
    /// Interrupts waits at a barrier or a join.
    dsm::Interruptions interruptions = {};
    /// Those of them that are for the calling thread alone: one that waits for a region has no
    /// others.
    dsm::Interruptions own_interruptions = {};
    TaskObserver* observer = nullptr;  ///< hears of threads and tasks; null: there is no tool
};

/// A task as a construct describes it.
struct NewTask {
    OutlinedFunction function = nullptr;
    void* data = nullptr;
    void (*copy)(void* to, void* from) = nullptr;  ///< null: bytes are copied
    std::size_t bytes = 0, alignment = 1;          ///< of what is copied if it is deferred
    const std::uint64_t* front = nullptr;          ///< two words put at the front of what is copied
    bool always_copied = false;                    ///< even so
    bool deferred = true, final = false;
    std::int32_t priority = 0;
    std::vector<Dependence> dependences;
    std::uint64_t* event = nullptr;  ///< detached: gets the event, as does the first word of `data`
    bool runs_anyway = false;        ///< even when cancelled: `function` asks, and cleans up
    bool gives_data = false;  ///< `data` is from allocate_for_task(), and freed behind the body
    bool is_target = false, untied = false;  ///< for a tool
};

/// The task around one that its creator executes itself, while it does.
struct SuspendedTask {
    Task* task = nullptr;
    bool inlined = false, inlined_final = false;
    void* kept = nullptr;  ///< for a tool, of the one executed
};

/// Things that entry points do without the runtime and of which a tool is to hear.
enum class ToolReport : std::uint8_t {
    loop_begins,  ///< its code cuts it; `value`: iterations
    sections_begin,
    distribute_begins,
    work_ends,
    single_ends,
    masked_begins,
    masked_ends,
    reduction_begins,  ///< its critical section is no event of its own
    reduction_ends,
    lock_made,  ///< `value`: the lock's key
    nested_lock_made,
    lock_gone,
    nested_lock_gone,
    barrier_is_implicit,  ///< the next one
};

/// What the program asks for its data on a device; there is no device.
enum class TargetData : std::uint8_t { enter, exit, update };

/// Some iterations of a loop whose bounds are closed.
struct LoopChunk {
    std::uint64_t first = 0, last = 0, step = 1;
    bool ends_loop = false;
};

/// Since start.
struct TaskCounts {
    std::uint64_t executed = 0;  ///< explicit tasks, by this node's threads
    std::uint64_t taken = 0;     ///< of these, came from other nodes
};

/// Where the calling thread stands.
struct TeamPosition {
    std::uint32_t thread = 0, team_size = 1;
    std::uint32_t level = 0, active_level = 0;
};

/// One node's OpenMP runtime. Methods are called by threads of the program on their own stack;
/// those that synchronize switch to the runtime stack themselves. A thread the runtime does not
/// know (the program made it) is an initial thread. On node 0 its regions have as many threads as
/// others, unless another region of several threads runs at that moment; then, and on the other
/// nodes, they have one.
class Runtime {
public:
    /// Registers memory; before Endpoint::connect(); attach() after it. Reads OMP_* variables;
    /// a bad value is named in one line and its default taken.
    static Result<std::unique_ptr<Runtime>> create(const Parts& parts);
    /// Outside parallel regions only; ends the threads of a one-node runtime.
    virtual ~Runtime() = default;
    virtual void attach() = 0;

    /// Body of every thread but the first of node 0: runs its share of each region until quit().
    virtual void work(std::uint32_t local_thread) noexcept = 0;
    /// Marks the calling thread as the job's initial thread (global thread 0).
    virtual void become_initial_thread() noexcept = 0;
    /// Node 0, once, at the end of the program: sends every other node home. On one node, ends the
    /// threads of the runtime. Regions have one thread from here on.
    virtual void quit() noexcept = 0;
    /// Counts threads that the program itself has started (+1) and that have ended (-1): while
    /// there are any, a synchronization may not assume that this node's other threads stand still.
    virtual void count_program_threads(int change) noexcept = 0;

    /// Runs function(data) on a team and returns when all have. `threads`: 0 the default, 1 no
    /// team; more than there are is as many as there are.
    virtual void parallel(OutlinedFunction function, void* data,
                          std::uint32_t threads) noexcept = 0;
    /// A region whose body starts inside a worksharing loop or sections (combined constructs).
    /// `threads_max`: 0, or more threads than this have nothing to do.
    virtual void parallel_loop(OutlinedFunction function, void* data, std::uint32_t threads,
                               const Loop& loop, std::uint32_t threads_max) noexcept = 0;
    /// A region with task reductions, described by the compiler. @return the team's size
    virtual std::uint32_t parallel_reductions(OutlinedFunction function, void* data,
                                              std::uint32_t threads,
                                              std::uintptr_t* reductions) noexcept = 0;
    /// As parallel(); `code` is what the program calls the region, where `function` only leads
    /// there.
    virtual void parallel_at(const void* code, OutlinedFunction function, void* data,
                             std::uint32_t threads) noexcept = 0;
    /// A region whose function the caller calls itself in between, as the team's first thread; it
    /// starts inside of `loop`, if one is given. As parallel() and parallel_loop() besides.
    virtual void begin_region(OutlinedFunction function, void* data, std::uint32_t threads,
                              const Loop* loop, std::uint32_t threads_max) noexcept = 0;
    virtual void end_region() noexcept = 0;
    /// A region of one thread whose code the caller executes in between.
    virtual void begin_alone() noexcept = 0;
    virtual void end_alone() noexcept = 0;
    /// The caller's next region has a proc_bind clause.
    virtual void want_binding(ProcBind policy) noexcept = 0;
    /// The caller's place in environment().places; those are the places of its node.
    virtual Binding binding() noexcept = 0;
    /// A barrier of the caller's team. Once its region is cancelled: returns at once, and the
    /// threads that wait leave it.
    virtual void barrier() noexcept = 0;
    /// A flush of the whole memory.
    virtual void flush() noexcept = 0;

    /// Cancels what the calling thread is in: its innermost region, the worksharing construct it
    /// executes, or its innermost taskgroup. Whatever is running goes on to its next cancellation
    /// point. False: OMP_CANCELLATION is not set; true: the caller leaves the construct.
    virtual bool cancel(Cancel what) noexcept = 0;
    /// Whether the caller is to leave the construct. A cancelled region is also a reason for a task
    /// to leave its taskgroup.
    virtual bool cancellation_point(Cancel what) noexcept = 0;
    /// As barrier(). True: the region is cancelled, and the caller leaves it.
    virtual bool barrier_cancel() noexcept = 0;

    /// Runs function(data) as an initial thread of its own would. `thread_limit`: 0 none.
    virtual void run_apart(OutlinedFunction function, void* data,
                           std::uint32_t thread_limit) noexcept = 0;
    /// Runs function(data) once for each team of a league; 0 stands for the defaults.
    virtual void league(OutlinedFunction function, void* data, std::uint32_t teams,
                        std::uint32_t thread_limit) noexcept = 0;
    /// The same for code that asks for each team by itself; false: that was the last.
    virtual bool next_team(std::uint32_t teams, std::uint32_t thread_limit,
                           bool first) noexcept = 0;

    /// Starts the team's next loop; chunks come from loop_next().
    virtual void loop_start(const Loop& loop) noexcept = 0;
    /// Takes the next chunk [*first, *end). False: none left.
    virtual bool loop_next(std::uint64_t* first, std::uint64_t* end) noexcept = 0;
    /// The same of a loop with `closed` bounds, or a doacross loop.
    virtual bool loop_next_closed(LoopChunk* chunk) noexcept = 0;
    virtual void loop_end(bool wait) noexcept = 0;
    /// Waits. True: the region is cancelled, and the caller leaves it.
    virtual bool loop_end_cancel() noexcept = 0;
    /// Zeroed memory that the team's threads share until the end of the loop they are about to
    /// start.
    virtual void* loop_memory(std::size_t bytes) noexcept = 0;
    /// Starts a doacross loop; `counts` are the iterations of its nest, and the loop runs over the
    /// outermost's, from 0.
    virtual void doacross_start(std::span<const std::uint64_t> counts, Schedule schedule,
                                std::uint64_t chunk) noexcept = 0;
    /// Iteration `at` of the nest is done: its thread says so; another waits for it.
    virtual void doacross_post(const std::uint64_t* at) noexcept = 0;
    virtual void doacross_wait(const std::uint64_t* at) noexcept = 0;
    virtual std::size_t doacross_dimensions() noexcept = 0;
    virtual void ordered_start() noexcept = 0;
    virtual void ordered_end() noexcept = 0;

    /// Makes a task of the calling one, or executes it at once.
    virtual void task(const NewTask& wanted) noexcept = 0;
    /// Memory that every node reaches, never null; aligned to `alignment`, a power of two.
    virtual void* allocate_for_task(std::size_t bytes, std::size_t alignment) noexcept = 0;
    virtual void free_for_task(void* block) noexcept = 0;
    /// An undeferred task whose code the caller executes in between.
    virtual void begin_task(SuspendedTask* outer, bool final) noexcept = 0;
    virtual void end_task(const SuspendedTask& outer) noexcept = 0;
    /// Waits until the calling task's children are complete; executes its descendants meanwhile.
    virtual void task_wait() noexcept = 0;
    /// Waits until the tasks are complete that a task with these dependences would wait for.
    virtual void task_wait_for(std::vector<Dependence> dependences) noexcept = 0;
    virtual void task_yield() noexcept = 0;
    virtual void taskgroup_start() noexcept = 0;
    virtual void taskgroup_end() noexcept = 0;
    /// Makes tasks of a loop. `wanted.front` is set here.
    virtual void task_loop(NewTask& wanted, const TaskLoop& loop) noexcept = 0;
    virtual bool in_final() noexcept = 0;
    virtual bool in_explicit_task() noexcept = 0;
    /// The innermost descriptor of task reductions of the calling task (task/reductions.hpp).
    virtual std::uintptr_t* task_reductions() noexcept = 0;
    /// The same if its innermost taskgroup itself has one; else null.
    virtual std::uintptr_t* group_reductions() noexcept = 0;
    /// Makes the calling task's taskgroup one with reductions, described by the compiler at `data`.
    virtual void register_reductions(std::uintptr_t* data) noexcept = 0;
    virtual void unregister_reductions(std::uintptr_t* data) noexcept = 0;
    /// The same for a worksharing construct, whose threads share the copies; with a taskgroup.
    virtual void start_shared_reductions(std::uintptr_t* data) noexcept = 0;
    virtual void end_shared_reductions(bool cancelled) noexcept = 0;
    virtual void remap_reductions(std::span<void*> pointers, std::size_t originals) noexcept = 0;
    /// Any thread of any node.
    virtual void fulfill_event(std::uint64_t event) noexcept = 0;
    virtual TaskCounts task_counts() const noexcept = 0;

    virtual bool single_start() noexcept = 0;
    /// nullptr: the caller executes the block and then calls single_copy_end(); others get the
    /// executor's pointer once it is published.
    virtual void* single_copy_start() noexcept = 0;
    virtual void single_copy_end(void* data) noexcept = 0;
    /// All threads of the team call it, one of them with `gives`; returns that one's pointer,
    /// behind a barrier.
    virtual void* pass_on(void* data, bool gives) noexcept = 0;

    /// Mutual exclusion with release and acquire. `key` is one of the runtime's, or the address of
    /// 4 aligned bytes of the program, zero when the lock is made: the lock on one node, never
    /// touched on several.
    virtual void lock(std::uint64_t key) noexcept = 0;
    virtual bool try_lock(std::uint64_t key) noexcept = 0;
    virtual void unlock(std::uint64_t key) noexcept = 0;
    virtual void forget_lock(std::uint64_t key) noexcept = 0;
    /// All threads of the team call it, each with what it has to add to variables that lock `key`
    /// guards. True: the caller holds the lock (a team of one thread: does without), adds what
    /// `data` describes now, and unlocks. False: another thread has taken it over and will.
    /// `combine` null: each adds its own.
    virtual bool reduce(std::uint64_t key, void* data, CombineFunction combine) noexcept = 0;
    /// The caller adds the term, a variable of its own, to the variable of a reduction by one
    /// atomic right behind `code`. False: it is to call reduce(). The atomic may be passed over,
    /// its work be left to the region's join (docs/decisions/reductions-travel-in-the-join.md).
    virtual bool announce_term(const void* /*code*/, const void* /*term*/) noexcept {
        return false;
    }
    /// The caller does otherwise than it was told to announce.
    virtual void withdraw_term() noexcept {}
    /// A lock its holder may take again. @return how often the caller holds it now; 0 from
    /// try_lock_nested(): another thread has it.
    virtual std::uint32_t lock_nested(std::uint64_t key) noexcept = 0;
    virtual std::uint32_t try_lock_nested(std::uint64_t key) noexcept = 0;
    virtual void unlock_nested(std::uint64_t key) noexcept = 0;

    virtual TeamPosition place() noexcept = 0;
    /// place().level != 0: the calling thread is in a parallel region.
    virtual bool is_in_region() noexcept = 0;
    /// Whether the calling thread is the one that entered main.
    virtual bool is_initial_thread() noexcept = 0;
    /// The calling task's control variables, to read and to change.
    virtual Icvs& icvs() noexcept = 0;
    virtual Environment& environment() noexcept = 0;
    /// Thread number of the caller's ancestor at `level`, and the size of the team there; -1 for
    /// no such level.
    virtual int ancestor_thread(int level) noexcept = 0;
    virtual int team_size_at(int level) noexcept = 0;
    virtual std::uint32_t thread_limit() noexcept = 0;
    virtual std::uint32_t processors() noexcept = 0;

    /// The calling thread, one the program has made, is about to end.
    virtual void forget_thread() noexcept = 0;

    /// Regions of more than one thread in which threads of this node have taken part.
    virtual std::uint64_t regions_taken_part() const noexcept = 0;
    /// Those whose team stayed on node 0, since that took less time (HIROBA_REGIONS).
    virtual const StayedRegions& stayed_regions() const noexcept = 0;

    // For a first-party tool (docs/layers/ompt.md); without one they do nothing.
    /// Notes the address from which the program has called the entry point that the caller is in.
    virtual void note_caller(const void*) noexcept {}
    virtual void tell_tool(ToolReport, std::uint64_t) noexcept {}
    /// A construct that moves data has nothing to do; it has waited for what it depends on.
    virtual void tell_target_data(TargetData, bool /*nowait*/) noexcept {}
    /// An `error` construct is met: before its line, of `length` bytes.
    virtual void tell_error(bool /*fatal*/, const char*, std::size_t) noexcept {}
    /// @return the tool's answer; -1: it does not listen, -2: there is none
    virtual int control_tool(int, int, void*) noexcept { return -2; }
    /// The process is about to end. `threads_end`: the node's threads come to an end, and are
    /// waited for; else the program leaves in the middle of a region.
    virtual void finish_tool(bool) noexcept {}
};

}  // namespace hiroba::omp
