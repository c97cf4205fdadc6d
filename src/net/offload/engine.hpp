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
//           through the queue: whoever has the role executes it, and nobody waits for a latch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/thread_context.hpp"
#include "net/net.hpp"
#include "net/offload/command.hpp"
#include "net/offload/command_queue.hpp"
#include "net/offload/slot_table.hpp"

namespace hiroba::net::offload {

enum class Mode : std::uint8_t { automatic, always, never };

class Engine final : public ProgressPart {
public:
    /// Attaches itself to `endpoint`.
    Engine(Endpoint& endpoint, Mode mode);

    Mode mode() const noexcept { return mode_; }
    /// False when a queue is full: nothing was done. Any thread, handlers and callbacks too; never
    /// blocks.
    bool submit(const Command& command) noexcept;
    /// Nothing is queued or in flight. Any thread.
    bool idle() const noexcept { return queue_.empty() && !slots_.any_busy(); }

    std::size_t progress() noexcept override;
    void completed(OpId id) noexcept override;
    void failed(OpId id) noexcept override;
    bool blocked() const noexcept override {
        // Relaxed: says only how long to sleep.
        return blocked_.load(std::memory_order_relaxed) ||
               guesses_waiting_.load(std::memory_order_relaxed) != 0;
    }
    bool may_sleep() noexcept override { return queue_.sleep_if_empty(); }
    bool queued_since_last_asked() noexcept override {
        const std::uint64_t taken = queue_.taken();
        return std::exchange(taken_seen_, taken) != taken || !queue_.empty();
    }
    void awake() noexcept override { queue_.awake(); }

    static constexpr std::size_t queue_capacity = 1024;
    static constexpr std::size_t batch_max = 32;

private:
    struct Parts;
    bool enqueue(const Command& command) noexcept;
    Post issue(const Command& command) noexcept;
    std::size_t execute_batch() noexcept;
    std::size_t repeat_guesses() noexcept;
    void describe(std::uint32_t index, const Command& command, Work& work, Parts& parts) noexcept;
    /// The provider is done with the slot. Progress role, or the caller of a parallel provider.
    void settle(std::uint32_t index) noexcept;
    void guess_again(std::uint32_t index) noexcept;
    void finish(std::uint32_t index, Outcome outcome) noexcept;

    Endpoint& endpoint_;
    Mode mode_;
    SlotTable slots_;
    CommandQueue<Command, queue_capacity> queue_;
    std::uint64_t taken_seen_ = 0;  ///< service thread
    std::atomic<bool> blocked_{false};
    std::atomic<std::uint32_t> guesses_waiting_{0};
    /// Narrow atomics that the provider had no room for when they had to guess again.
    std::array<std::atomic<bool>, SlotTable::slots_max> guess_waits_{};
};

/// Runs `callback` on this thread; what requests inside it complete at once runs after it, not in
/// it, so that a chain of callbacks does not grow the stack.
/// @param thread  this_thread()
void run_callback(ThreadContext& thread, const Callback& callback, Outcome outcome) noexcept;
/// False when so many callbacks wait behind the running one that no request may complete now.
bool may_run_callback(ThreadContext& thread) noexcept;

}  // namespace hiroba::net::offload
