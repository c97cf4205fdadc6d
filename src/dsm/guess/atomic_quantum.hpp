// SPDX-License-Identifier: BSD-3-Clause
// Role: whether this node and others take blocks from each other for atomics all the time, and then
// how long one goes on alone, with the token (NewsBoard). What changes hands costs both: the one
// that lets go makes a release, the other acquires it and brings what it reads and writes anew. A
// quantum lasts until that was a fifth of it; both are measured while it runs.
// Invariant: a hint. It decides when an atomic begins, never what it does.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "base/latch.hpp"
#include "base/turns.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe. Times are of now_ns(). A simulated node has no quantum.
class AtomicQuantum {
public:
    /// While one lives, a thread waits for another node, or brings what lies there.
    class SlowPart {
    public:
        explicit SlowPart(AtomicQuantum& quantum) noexcept
            : quantum_(quantum), begun_ns_(quantum.has_met() ? now_ns() : 0) {
            if (begun_ns_ != 0) quantum_.slow_parts_.fetch_add(1, std::memory_order_relaxed);
        }
        SlowPart(const SlowPart&) = delete;
        SlowPart& operator=(const SlowPart&) = delete;
        ~SlowPart() {
            if (begun_ns_ == 0) return;
            const std::uint64_t now = now_ns();
            quantum_.note_slow(now - begun_ns_);
            quantum_.note_atomics(now, 0);  // one follows
            quantum_.slow_parts_.fetch_sub(1, std::memory_order_relaxed);
        }

    private:
        AtomicQuantum& quantum_;
        std::uint64_t begun_ns_;
    };

    /// @param made  so many since the last call that changed something
    void note_atomics(std::uint64_t now, std::uint64_t made) noexcept {
        store(last_ns_, now);
        store(last_tick_, 0);
        add(made_, made);
    }
    /// Likewise, where no clock can be read: it may use the program's vectors.
    void note_atomics_now(std::uint64_t made) noexcept {
        store(last_tick_, __builtin_ia32_rdtsc());
        add(made_, made);
    }
    /// An atomic had to bring its block from another node.
    void note_met(std::uint64_t now) noexcept {
        if (turns_of_this_thread() != nullptr) return;  // no clock may decide there
        if (now - load(window_ns_) > lately_ns) begin_window(now);
        add(met_, 1);
        if (load(met_) < met_min) return;
        const std::uint64_t passed = now - load(window_ns_);
        const std::uint64_t slow = std::min(passed, load(slow_ns_) - load(window_slow_ns_));
        const std::uint64_t made = load(made_) - load(window_made_);
        if (slow_share * slow > passed && passed - slow < made * dense_ns) note_contested(now);
        begin_window(now);
    }
    /// So long a thread has waited for other nodes.
    void note_slow(std::uint64_t ns) noexcept { add(slow_ns_, ns); }
    /// Whether one has, ever.
    bool has_met() const noexcept { return load(window_ns_) != 0; }
    /// Whether much of the time of late went into changes of hands between many atomics.
    bool is_contested(std::uint64_t now) const noexcept { return now < load(contested_until_ns_); }
    void note_contested(std::uint64_t now) noexcept { store(contested_until_ns_, now + lately_ns); }

    /// Whether the last atomic was just now.
    bool is_in_row(std::uint64_t now) const noexcept {
        return turns_of_this_thread() != nullptr || since_last(now) <= gap_ns;
    }
    bool is_dense(std::uint64_t now) const noexcept { return since_last(now) <= idle_ns; }

    /// A quantum begins or ends with the token; `at` is also when it was last seen to be here.
    void begin(std::uint64_t now) noexcept {
        store(begun_ns_, now);
        store(seen_ns_, now);
        store(quantum_slow_ns_, load(slow_ns_));
        note_contested(now);
        begin_window(now);
    }
    /// A thread has waited for the token.
    void note_token_wait(std::uint64_t ns) noexcept { add(token_wait_ns_, ns); }
    /// So long threads have waited for other nodes, in all.
    std::uint64_t waited_ns() const noexcept { return load(slow_ns_) + load(token_wait_ns_); }
    bool has_token() const noexcept { return load(begun_ns_) != 0; }
    /// It may have been taken away meanwhile.
    bool is_token_to_be_looked_for(std::uint64_t now) const noexcept {
        return !has_token() || now - load(seen_ns_) > look_ns;
    }
    void note_seen(std::uint64_t now) noexcept { store(seen_ns_, now); }
    void lose_token() noexcept { store(begun_ns_, 0); }
    /// The token has been given: others go first.
    void note_given(std::uint64_t now) noexcept {
        store(given_ns_, now);
        note_contested(now);
    }
    bool has_just_given(std::uint64_t now) const noexcept {
        return now - load(given_ns_) < given_for_ns;
    }
    /// Others want the token or a held block: whether this node goes on.
    bool goes_on(std::uint64_t now) const noexcept {
        const std::uint64_t begun = load(begun_ns_);
        if (begun == 0 || turns_of_this_thread() != nullptr) return false;
        const std::uint64_t spent = now - std::min(begun, now);
        const std::uint64_t idle = std::min(since_last(now), spent);
        if (slow_parts_.load(std::memory_order_relaxed) == 0 && idle > idle_max_ns(spent - idle))
            return false;
        const std::uint64_t slow = load(slow_ns_) - load(quantum_slow_ns_);
        return spent < shortest_ns || (spent < longest_ns && spent < worth_times * slow);
    }
    /// So long a node without an atomic keeps the token, with which it made some for `active_ns`:
    /// its thread may have lost its processor.
    static std::uint64_t idle_max_ns(std::uint64_t active_ns) noexcept {
        return std::max(idle_ns, active_ns / 8);
    }
    /// So long a node waits for it at most: others are to have a quantum each.
    static std::uint64_t longest_wait_ns(unsigned nodes) noexcept {
        return std::min(nodes, quanta_max) * longest_ns;
    }

    /// Blocks that were held in this quantum, whoever asks for one will ask for all of them.
    void note_held(BlockId block) noexcept {
        if (!has_token() || !latch_.try_lock()) return;
        if (held_count_ < held_.size())
            held_[held_count_++].store(block, std::memory_order_relaxed);
        latch_.unlock();
    }
    template <class Give>
    void each_held(Give&& give) noexcept {
        if (!latch_.try_lock()) return;
        const std::size_t count = std::exchange(held_count_, 0);
        latch_.unlock();
        // A quantum that begins meanwhile may write over them: then who wants one asks for it.
        for (std::size_t i = 0; i < count; ++i) give(held_[i].load(std::memory_order_relaxed));
    }

private:
    /// Without an atomic: a node that has gone on does something else.
    static constexpr std::uint64_t idle_ns = 20'000;
    static constexpr std::uint64_t gap_ns = 5'000;
    static constexpr std::uint64_t lately_ns = 200'000'000, look_ns = 100'000;
    static constexpr std::uint64_t met_min = 16;
    static constexpr std::uint64_t slow_share = 4;    ///< a quarter of the time or more
    static constexpr std::uint64_t dense_ns = 2'000;  ///< from one atomic to the next, at most
    static constexpr std::uint64_t shortest_ns = 100'000, longest_ns = 2'000'000'000;
    static constexpr std::uint64_t worth_times = 5;
    static constexpr std::uint64_t given_for_ns = 200'000;  ///< a wake-up of who waits for it
    static constexpr unsigned quanta_max = 8;
    static constexpr std::size_t held_max = 4096;

    // Relaxed: a value that another thread overwrites is lost.
    static std::uint64_t load(const std::atomic<std::uint64_t>& value) noexcept {
        return value.load(std::memory_order_relaxed);
    }
    static void store(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept {
        value.store(to, std::memory_order_relaxed);
    }
    static void add(std::atomic<std::uint64_t>& value, std::uint64_t by) noexcept {
        store(value, load(value) + by);
    }
    void begin_window(std::uint64_t now) noexcept {
        store(window_ns_, now);
        store(window_slow_ns_, load(slow_ns_));
        store(window_made_, load(made_));
        store(met_, 0);
    }

    /// The processor's ticks count evenly, at a rate that what has passed since the beginning
    /// tells.
    std::uint64_t since_last(std::uint64_t now) const noexcept {
        const std::uint64_t tick = load(last_tick_);
        if (tick == 0) return now - load(last_ns_);
        const std::uint64_t now_tick = __builtin_ia32_rdtsc();
        const auto rate = static_cast<double>(now - first_ns_) /
                          static_cast<double>(std::max<std::uint64_t>(now_tick - first_tick_, 1));
        return now_tick < tick
                   ? 0
                   : static_cast<std::uint64_t>(static_cast<double>(now_tick - tick) * rate);
    }

    const std::uint64_t first_ns_ = now_ns(), first_tick_ = __builtin_ia32_rdtsc();
    /// Each atomic that asks for a token looks at it: apart from what many of them write.
    alignas(64) std::atomic<std::uint64_t> begun_ns_{0};  ///< 0: the token is elsewhere
    std::atomic<std::uint64_t> contested_until_ns_{0}, seen_ns_{0}, given_ns_{0};
    alignas(64) std::atomic<std::uint64_t> last_tick_{0};  ///< of the last; 0: a clock was read
    std::atomic<std::uint64_t> last_ns_{0}, made_{0}, slow_ns_{0}, quantum_slow_ns_{0};
    std::atomic<std::uint64_t> window_ns_{0}, window_slow_ns_{0}, window_made_{0}, met_{0};
    std::atomic<std::uint64_t> token_wait_ns_{0};
    std::atomic<std::uint32_t> slow_parts_{0};
    Latch latch_;
    std::size_t held_count_ = 0;
    std::array<std::atomic<BlockId>, held_max> held_{};
};

}  // namespace hiroba::dsm
