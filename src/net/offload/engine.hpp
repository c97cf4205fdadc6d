// SPDX-License-Identifier: BSD-3-Clause
// Role: takes requests from any thread and brings each to its completion: requester, executor and
// completer. Source: Endo & Taura, low-level communication layer, section 3.
//
//   submit() -> [queue] -> progress(): a list for the provider -> completed() -> callback
//
// Executor and completer are whoever has the endpoint's progress role: a waiting thread while it
// waits, else the service thread. So the strictest provider (no two calls at once) is served by
// design, and what a looser one allows is the same code run on the caller's thread.
//
// Which way a request takes, by HIROBA_OFFLOAD:
//   always  through the queue;
//   never   on the caller's thread, which takes the progress role for the call unless the provider
//           is parallel;
//   auto    on the caller's thread if the provider is parallel or the progress role is free, else
//           through the queue: whoever has the role executes it, and nobody waits for a latch. What
//           may share datagrams with others joins them while something is under way: at the
//           provider if that gathers and no other thread is in it, else in the queue. The next
//           poll, which the answers to that bring at the latest, sends all of it as lists.
//
// Where the provider has several sets of queues that threads may use at once, there may be several
// executors (executors.cpp): each is a thread that empties command queues of its own, posts to a
// set of the provider's, and completes what it finds there. The progress role is the first.
//
// Foreign calls, which belong to one thread and bear no call beside them, have a queue of their
// own: the service thread alone empties it, with the progress role.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/bell.hpp"
#include "base/thread_context.hpp"
#include "net/net.hpp"
#include "net/offload/command.hpp"
#include "net/offload/command_queue.hpp"
#include "net/offload/slot_table.hpp"

namespace hiroba::net::offload {

enum class Mode : std::uint8_t { automatic, always, never };

/// Runs `callback` on this thread; what requests inside it complete at once runs after it, not in
/// it, so that a chain of callbacks does not grow the stack.
/// @param thread  this_thread()
void run_callback(ThreadContext& thread, const Completion& callback, Outcome outcome) noexcept;
/// False when so many callbacks wait behind the running one that no request may complete now.
bool may_run_callback(ThreadContext& thread) noexcept;

class Engine final : public ProgressPart {
public:
    /// Attaches itself to `endpoint`.
    /// @param queues  1 to queues_max; a thread always uses the same one
    /// @param executors  wanted; there are no more than queues, nor than the provider is for
    Engine(Endpoint& endpoint, Mode mode, std::uint32_t queues = 1, std::uint32_t executors = 1);
    ~Engine() override;
    /// Starts the executors beside the progress role. Once, after Endpoint::connect().
    void start_executors();
    std::uint32_t executors() const noexcept { return executors_count_; }

    Mode mode() const noexcept { return mode_; }
    /// False when a queue is full: nothing was done. Any thread, handlers and callbacks too; never
    /// blocks.
    /// @param write  write(Command&) writes what the command's kind has; a command that is queued
    ///        is written where it stays, once
    /// @param may_join  it need not leave before the next poll while something is under way
    template <class Write>
    bool submit(const Write& write, bool may_join = false) noexcept {
        if (mode_ == Mode::always) return enqueue(write);
        Command command;
        write(command);
        return submit_by_mode(command, may_join);
    }
    /// Queues a foreign call for the service thread. False when the queue is full. Any thread,
    /// handlers and callbacks too; never blocks.
    bool submit_call(const CallParams& call) noexcept;
    /// Nothing is queued or in flight. Any thread.
    bool idle() const noexcept {
        return queues_empty() && calls_.empty() && !slots_.any_busy() && under_way_->load() == 0;
    }

    std::size_t progress() noexcept override;
    bool take_joined() noexcept override {
        // Sequentially consistent, as all of both words: see join().
        return joined_.load() && joined_.exchange(false);
    }
    bool awaits_few_answers() const noexcept override {
        const std::uint32_t under_way = under_way_->load(std::memory_order_relaxed);
        return under_way != 0 && under_way <= few_max;
    }
    void completed(OpId id) noexcept override;
    void failed(OpId id) noexcept override;
    void ended(const Completion& then, Outcome outcome) noexcept override {
        run_callback(this_thread(), then, outcome);
    }
    bool blocked() const noexcept override {
        // Relaxed: says only how long to sleep.
        return blocked_.load(std::memory_order_relaxed) ||
               guesses_waiting_.load(std::memory_order_relaxed) != 0;
    }
    bool may_sleep() noexcept override { return queues_may_sleep(0); }
    bool queued_since_last_asked() noexcept override {
        std::uint64_t taken = 0;
        bool empty = true;
        for (std::size_t i = 0; i < queues_.size(); i += executors_count_) {
            taken += queues_[i]->taken();
            empty = empty && queues_[i]->empty();
        }
        // Relaxed: a hint, see gather().
        const bool gathered = gathered_.exchange(false, std::memory_order_relaxed);
        return std::exchange(taken_seen_, taken) != taken || gathered || !empty;
    }
    void awake() noexcept override { queues_awake(0); }
    bool has_calls() const noexcept override { return !calls_.empty(); }
    void run_calls() noexcept override;

    static constexpr std::uint32_t queues_max = 16;
    static constexpr std::size_t queue_capacity = 1024;
    static constexpr std::size_t batch_max = 32;
    static constexpr std::size_t calls_capacity = 64;
    static constexpr std::uint32_t gathered_max = SlotTable::slots_max - 64;  ///< else `again`
    static constexpr std::size_t gathered_bytes_max = 512;                    ///< of a write
    static constexpr std::uint32_t few_max = 16;  ///< more fill datagrams without other threads

private:
    struct Parts;
    using Queue = CommandQueue<Command, queue_capacity>;
    bool queues_empty() const noexcept {
        return std::all_of(queues_.begin(), queues_.end(),
                           [](const auto& queue) { return queue->empty(); });
    }
    /// The calling thread's.
    std::uint32_t queue_of_thread() const noexcept;
    /// The executor whose queues have the same remainder; 0: the progress role.
    std::uint32_t executor_of(std::uint32_t queue) const noexcept {
        return queue % executors_count_;
    }
    template <class Write>
    bool enqueue(const Write& write) noexcept {
        const std::uint32_t index = sole_queue_ != nullptr ? 0 : queue_of_thread();
        const Queue::Put put = (sole_queue_ != nullptr ? *sole_queue_ : *queues_[index]).put(write);
        if (put == Queue::Put::done_wake) [[unlikely]]
            wake_executor(executor_of(index));
        return put != Queue::Put::full;
    }
    void wake_service() noexcept;
    void wake_executor(std::uint32_t number) noexcept;
    void run_executor(std::uint32_t number) noexcept;
    bool queues_may_sleep(std::uint32_t executor) noexcept;
    void queues_awake(std::uint32_t executor) noexcept;
    /// One queue's length of each of its queues at most.
    std::size_t execute_queues(std::uint32_t executor, bool& stuck) noexcept;
    bool submit_by_mode(const Command& command, bool may_join) noexcept;
    bool join(const Command& command) noexcept;
    bool gather(const Command& command) noexcept;
    Post issue_bare(const Command& command) noexcept;
    /// @param with_next  it may stay with the provider until more comes
    Post issue(const Command& command, bool with_next = false) noexcept;
    /// `stuck` becomes true when the provider has no room for all of it.
    /// @param with_next  a poll follows at once
    std::size_t execute_batch(Queue& queue, bool with_next, bool& stuck) noexcept;
    std::size_t repeat_guesses() noexcept;
    void describe(std::uint32_t index, const Command& command, Work& work, Parts& parts) noexcept;
    /// The provider is done with the slot. Progress role, or the caller of a parallel provider.
    void take_result(std::uint32_t index) noexcept;
    void guess_again(std::uint32_t index) noexcept;
    void finish(std::uint32_t index, Outcome outcome) noexcept;

    Endpoint& endpoint_;
    Mode mode_;
    SlotTable slots_;
    std::vector<std::unique_ptr<Queue>> queues_;
    Queue* sole_queue_ = nullptr;  ///< where there is one
    /// One beside the progress role.
    struct alignas(cache_line_bytes) Executor {
        Bell bell;
        std::thread thread;
    };
    std::vector<std::unique_ptr<Executor>> executors_;  ///< number 1 is the first
    std::uint32_t executors_count_;                     ///< with the progress role
    std::atomic<bool> stopping_{false};
    CommandQueue<CallParams, calls_capacity> calls_;  ///< consumer: the service thread
    std::uint64_t taken_seen_ = 0;                    ///< service thread
    bool
        counts_;  ///< the engine keeps in_flight_: posting is dear, and the provider does not count
    bool gathers_;                                 ///< the provider keeps what may join
    const std::atomic<std::uint32_t>* under_way_;  ///< in_flight_, or the provider's own count
    alignas(cache_line_bytes) std::atomic<std::uint32_t> in_flight_{0};  ///< slots at the provider
    std::atomic<bool> joined_{false};
    std::atomic<bool> gathered_{false};  ///< since the service thread asked last
    std::atomic<bool> blocked_{false};   ///< some queue's first command
    std::atomic<std::uint32_t> guesses_waiting_{0};
    /// Narrow atomics that the provider had no room for when they had to guess again.
    std::array<std::atomic<bool>, SlotTable::slots_max> guess_waits_{};
};

}  // namespace hiroba::net::offload
