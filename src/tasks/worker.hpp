// SPDX-License-Identifier: BSD-3-Clause
// Role: a worker: a thread that runs tasks, what it has to run, and the loop that looks for more.
//
// A task that starts a child keeps its own continuation in the worker's deque and runs the child at
// once; when the child ends, the worker pops the continuation and goes on with it, unless another
// worker has taken it. A task that waits leaves its stack for the worker's own one, where the loop
// begins anew: the loop is never resumed, so it keeps nothing on the stack. What takes a
// continuation out of the deque, or of the list of those that are ready, alone may resume it.
//
// Thread: the worker, but for what says otherwise. No function keeps a Worker& across a switch:
// behind it, the task may be another worker's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hiroba/tasks.hpp"
#include "tasks/context/context.hpp"
#include "tasks/deque.hpp"
#include "tasks/offers.hpp"
#include "tasks/stacks.hpp"
#include "tasks/steal.hpp"

namespace hiroba::tasks {

class Node;

/// A task that stands still, on its own stack.
struct Continuation {
    Context context;
    detail::Join* join = nullptr;  ///< of the child that runs instead
    Continuation* next = nullptr;  ///< of those that are ready
    bool has_yielded = false;
};

/// Counters of one worker, which other threads read.
struct WorkerCounts {
    std::atomic<std::uint64_t> tasks{0}, taken{0}, stolen{0}, attempts{0}, received{0},
        suspended{0};
    static void add(std::atomic<std::uint64_t>& to) noexcept {
        to.store(to.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // one writer
    }
};

class Worker {
public:
    Worker(Node& node, std::uint32_t index, std::byte* offers, const TopByNetwork& by);
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker();

    /// The worker of the calling thread, or nullptr. Asked anew behind each switch.
    [[gnu::noinline]] static Worker* here() noexcept;

    /// Runs tasks until the node's run is over.
    void work();

    // --- what a task calls -----------------------------------------------------------------------
    static void run_child(Stack* stack, void (*enter)(void*), detail::Join& join);
    static void wait(detail::Join& join);
    /// Puts the caller behind the others that are ready.
    static void yield();
    void run_or_offer(const Entry& head, const void* closure, detail::Join& join);
    bool has_other_work() const noexcept;

    Node& node() noexcept { return node_; }
    std::uint32_t index() const noexcept { return index_; }
    FreeStacks& stacks() noexcept { return stacks_; }
    Offers& offers() noexcept { return offers_; }
    /// Any thread.
    Deque<Continuation, 8192>& continuations() noexcept { return continuations_; }
    WorkerCounts& counts() noexcept { return counts_; }
    const WorkerCounts& counts() const noexcept { return counts_; }

private:
    static void* enter_child(void* stack) noexcept;
    static void* end_child(Stack* stack);
    static void* enter_entry(void* stack) noexcept;
    static void* enter_root(void* stack) noexcept;
    static void* first_loop(void* worker);
    static void* again(void* worker);
    static void* register_wait(void* join);
    static void* register_yield(void* continuation);
    [[noreturn]] void loop();
    /// Goes on with `own`, else with `waiter`, else with the loop. What is left is ready.
    [[noreturn]] void go_on(Continuation* own, Continuation* waiter);
    [[noreturn]] void resume(Continuation* of);
    [[noreturn]] void begin(const Entry& entry);
    /// These return when there was nothing.
    void run_own();
    void run_ready();
    void take_from_others();
    void steal();
    void rest();
    std::uint32_t random(std::uint32_t below) noexcept;

    Node& node_;
    const std::uint32_t index_;
    FreeStacks stacks_;
    Stack* const own_;  ///< the loop's
    StackPlace thread_place_;
    Context thread_;                     ///< work(), which the loop goes back to
    const StackPlace* place_ = nullptr;  ///< of the stack that the task has which runs
    Deque<Continuation, 8192> continuations_;
    Offers offers_;
    std::unique_ptr<RemoteSteal> remote_;
    WorkerCounts counts_;
    std::uint64_t random_;
    std::uint32_t rounds_ = 0;
    std::uint32_t idle_rounds_ = 0;
};

}  // namespace hiroba::tasks
