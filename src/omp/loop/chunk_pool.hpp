// SPDX-License-Identifier: BSD-3-Clause
// Role: the chunks of one worksharing loop that a node has taken from the team's counter, and its
// threads have not taken from the node yet.
// Invariant: numbers are handed out in ascending order, each once. A pool serves one loop; another
// loop begins in it only after every thread of this node has left the former one. Numbers that a
// cancelled loop has left are forgotten when the next loop begins.
//
// How many chunks a node takes at once is measured: as many as its threads execute while it asks
// for more sixteen times. So asking takes a sixteenth of one thread's time whatever an exchange
// costs, and a node that has chunks in store while others have none holds up the loop's end by no
// more than those sixteen exchanges. Where a chunk takes longer than that, chunks are taken one by
// one. Never more than half of a node's share of what is left (factoring: Flynn Hummel, Schonberg,
// Flynn, CACM 35(8), 1992), so a wrong guess about the chunks to come costs little.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/latch.hpp"
#include "base/thread_context.hpp"

namespace hiroba::omp {

/// How many chunks to ask for. Pure, but for what it remembers; times in nanoseconds.
class ChunkPace {
public:
    /// @param threads  of this node, each of which takes a chunk as soon as there is one
    explicit ChunkPace(std::uint32_t threads = 1) noexcept : amount_(threads) {}
    /// Called before asking: how many chunks to ask for, from 1 to `most`.
    std::uint32_t amount(std::uint64_t now, std::uint64_t most) noexcept {
        if (answered_at_ != 0) {
            const std::uint64_t chunk = std::max<std::uint64_t>(1, (now - answered_at_) / amount_);
            const std::uint64_t wanted = std::min(asking_, asking_max) * asks_worth / chunk;
            amount_ = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(wanted, 1, std::uint64_t{amount_} * growth_max));
        }
        const std::uint64_t bound = std::clamp<std::uint64_t>(most, 1, amount_max);
        amount_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(amount_, bound));
        return amount_;
    }
    /// Called after the answer to the question of the time `asked`.
    void answered(std::uint64_t asked, std::uint64_t now) noexcept {
        asking_ = now - asked;
        answered_at_ = now;
    }

    static constexpr std::uint64_t asks_worth = 16;
    /// One chunk says little of the next; but where asking takes long, few steps must do.
    static constexpr std::uint64_t growth_max = 64;
    static constexpr std::uint64_t amount_max = (1u << 24) - 1;
    /// A thread that was put off its core in the middle has measured something else.
    static constexpr std::uint64_t asking_max = 1'000'000;

private:
    std::uint32_t amount_;
    std::uint64_t asking_ = 0, answered_at_ = 0;
};

/// Private to a node. Thread: any of the team's on it.
class alignas(cache_line_bytes) ChunkPool {
public:
    /// A loop, as the whole job numbers it.
    struct Key {
        std::uint64_t region = 0, construct = 0;
    };
    /// Numbers from here on are not handed out.
    static constexpr std::uint64_t numbers_end = (std::uint64_t{1} << 40) - 1;

    /// False: the caller finds out that the slot's former loop is over everywhere, and begins.
    bool serves(const Key& key) const noexcept {
        // Acquire, both: pairs with begin(). One of them is new to a thread that finds the key.
        return region_.load(std::memory_order_acquire) == key.region &&
               construct_.load(std::memory_order_acquire) == key.construct;
    }
    void begin(const Key& key, std::uint32_t threads) noexcept {
        const RuntimeScope latches;
        const std::scoped_lock guard{latch_};
        if (serves(key)) return;
        word_.store(0, std::memory_order_relaxed);  // published by the next two
        left_.store(0, std::memory_order_relaxed);
        taken_until_ = 0;
        pace_ = ChunkPace{threads};
        construct_.store(key.construct, std::memory_order_release);  // pairs with serves()
        region_.store(key.region, std::memory_order_release);
    }

    /// The number of the next chunk; one of at least `end`: none is left.
    /// @param most   how many may be taken at once, given the first number not yet taken
    /// @param fetch  adds to the team's counter, and returns what it was
    template <class Most, class Fetch>
    std::uint64_t take(std::uint64_t end, Most&& most, Fetch&& fetch) noexcept {
        for (;;) {
            std::uint64_t word = word_.load(std::memory_order_acquire);  // pairs with refill()
            if (count_in(word) == 0) {
                refill(most, fetch);
                continue;
            }
            const std::uint64_t first = first_in(word);
            // Numbers behind the end stay in the pool: the next thread need not ask.
            if (first >= end || first >= numbers_end) return numbers_end;
            if (word_.compare_exchange_weak(word, word_of(first + 1, count_in(word) - 1),
                                            std::memory_order_acq_rel))
                return first;
        }
    }
    /// Some thread has found that no chunk is left.
    void exhaust() noexcept {
        const RuntimeScope latches;
        const std::scoped_lock guard{latch_};
        word_.store(word_of(numbers_end, 1), std::memory_order_release);
    }

    /// Called once by each of the node's `threads` in the team. True for the last.
    bool is_last_to_leave(std::uint32_t threads) noexcept {
        return left_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads;
    }

private:
    static constexpr unsigned count_bits = 24;
    static_assert(ChunkPace::amount_max >> count_bits == 0);
    static std::uint64_t word_of(std::uint64_t first, std::uint64_t count) noexcept {
        return first << count_bits | count;
    }
    static std::uint64_t first_in(std::uint64_t word) noexcept { return word >> count_bits; }
    static std::uint64_t count_in(std::uint64_t word) noexcept {
        return word & ((std::uint64_t{1} << count_bits) - 1);
    }

    template <class Most, class Fetch>
    void refill(Most&& most, Fetch&& fetch) noexcept {
        const RuntimeScope latches;
        const std::scoped_lock guard{latch_};
        if (count_in(word_.load(std::memory_order_relaxed)) != 0) return;  // another thread did
        const std::uint64_t asked = now_ns();
        const std::uint32_t amount = pace_.amount(asked, most(taken_until_));
        const std::uint64_t first = std::min<std::uint64_t>(fetch(amount), numbers_end);
        pace_.answered(asked, now_ns());
        taken_until_ = first + amount;
        word_.store(word_of(first, amount), std::memory_order_release);  // pairs with take()
    }

    std::atomic<std::uint64_t> word_{0};  ///< the next number, and how many from it on are here
    std::atomic<std::uint64_t> region_{0}, construct_{~std::uint64_t{0}};
    std::atomic<std::uint32_t> left_{0};
    Latch latch_;  ///< guards what follows, and stores to word_ that replace whatever it holds
    std::uint64_t taken_until_ = 0;
    ChunkPace pace_;
};

}  // namespace hiroba::omp
