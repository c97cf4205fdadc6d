// SPDX-License-Identifier: BSD-3-Clause
// Role: the queue between the threads that make requests and the one that executes them: lock-free,
// bounded, many producers, one consumer at a time.
// Source: Endo & Taura, low-level communication layer, sections 3.3 and 3.4.
//
// `tail` and `head` count commands since the start and never wrap, so a compare-and-swap that comes
// late fails (no ABA). Bit 0 of `tail` says "the consumer sleeps", which is why `tail` counts by
// two: the producer's one compare-and-swap claims a place, takes the flag away and learns whether a
// wake-up is due. Under load the flag is never set and nobody is woken.
//
// A place is visible once its own number is `position + 1`; it need not be cleared, since the next
// one to use the place writes a larger number. A consumer that meets a claimed place that is not
// visible yet returns: its producer was preempted, and spinning would only keep it from its core.
//
// Memory order: the release store of `visible` pairs with the acquire load in peek() (the command
// is complete); the release store of `head` with the acquire load in put() (the place was read);
// the release of the flag in sleep_if_empty() with the acquire of the producer's compare-and-swap
// (who sees the flag sees the sleeper announced before it).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.hpp"

namespace hiroba::net::offload {

/// Where a test may put another thread's step: before each access to shared memory.
struct NoStep {
    static void before() noexcept {}
};

template <class Command, std::size_t capacity, class Step = NoStep>
class CommandQueue {
    static_assert((capacity & (capacity - 1)) == 0);

public:
    enum class Put : std::uint8_t {
        done,
        done_wake,  ///< the consumer sleeps; the caller wakes it
        full
    };

    /// `fill(Command&)` writes the command in its place. Any thread; never blocks.
    template <class Fill>
    Put put(Fill&& fill) noexcept {
        return put_and_keep(std::forward<Fill>(fill), 0);
    }
    /// As put(), but leaves a consumer that sleeps asleep: for commands that another thread takes
    /// soon.
    template <class Fill>
    Put put_quietly(Fill&& fill) noexcept {
        return put_and_keep(std::forward<Fill>(fill), sleeping);
    }

private:
    template <class Fill>
    Put put_and_keep(Fill&& fill, std::uint64_t kept) noexcept {
        Step::before();
        std::uint64_t tail = tail_.load(std::memory_order_relaxed);
        do {
            Step::before();
            // Signed: a tail read long ago may lie behind head; then the exchange fails.
            const auto used = static_cast<std::int64_t>(tail / 2 - head_.load(acquire));
            if (used >= static_cast<std::int64_t>(capacity)) return Put::full;
            Step::before();
        } while (!tail_.compare_exchange_weak(tail, (tail & (~sleeping | kept)) + 2,
                                              std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
        const std::uint64_t position = tail / 2;
        Element& element = elements_[position % capacity];
        Step::before();
        fill(element.command);
        Step::before();
        element.visible.store(position + 1, std::memory_order_release);
        return (tail & (sleeping & ~kept)) != 0 ? Put::done_wake : Put::done;
    }

public:
    /// Points `commands` at the first that are there, in order; returns how many. Consumer.
    std::size_t peek(std::span<Command*> commands) noexcept {
        const std::uint64_t head = head_.load(std::memory_order_relaxed);  // its own
        std::size_t count = 0;
        for (; count < commands.size() && count < capacity; ++count) {
            Element& element = elements_[(head + count) % capacity];
            Step::before();
            if (element.visible.load(acquire) != head + count + 1) break;
            commands[count] = &element.command;
        }
        return count;
    }
    /// Gives the first `count` places back. Consumer.
    void take(std::size_t count) noexcept {
        Step::before();
        head_.store(head_.load(std::memory_order_relaxed) + count, std::memory_order_release);
    }

    /// How many commands were taken since the start. Any thread.
    std::uint64_t taken() const noexcept { return head_.load(std::memory_order_relaxed); }
    /// Nothing is queued. Any thread.
    bool empty() const noexcept {
        const std::uint64_t tail = tail_.load(acquire);
        return tail / 2 == head_.load(acquire);
    }
    /// Sets the flag if nothing is queued; false when something is. Called by the thread that
    /// sleeps.
    bool sleep_if_empty() noexcept {
        Step::before();
        std::uint64_t tail = tail_.load(acquire);
        Step::before();
        if (tail / 2 != head_.load(acquire)) return false;
        if ((tail & sleeping) != 0) return true;
        Step::before();
        return tail_.compare_exchange_strong(tail, tail | sleeping, std::memory_order_acq_rel);
    }
    /// Takes the flag away. Called by the thread that slept.
    void awake() noexcept {
        Step::before();
        if ((tail_.load(std::memory_order_relaxed) & sleeping) == 0) return;
        Step::before();
        tail_.fetch_and(~sleeping, std::memory_order_acq_rel);
    }

private:
    static constexpr std::uint64_t sleeping = 1;
    static constexpr auto acquire = std::memory_order_acquire;

    struct alignas(cache_line_bytes) Element {
        std::atomic<std::uint64_t> visible{0};
        Command command;
    };
    alignas(cache_line_bytes) std::atomic<std::uint64_t> tail_{0};
    alignas(cache_line_bytes) std::atomic<std::uint64_t> head_{0};
    std::array<Element, capacity> elements_;
};

}  // namespace hiroba::net::offload
