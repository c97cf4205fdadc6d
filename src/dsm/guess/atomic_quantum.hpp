// SPDX-License-Identifier: BSD-3-Clause
// Role: how long this node goes on with its atomics while another node waits for a block that is
// held here. What changes hands costs both: the one that lets go makes a release, the other
// acquires it and brings what it reads and writes anew. A quantum lasts a few times as long.
// Invariant: a hint. It decides when an atomic begins, never what it does.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "base/turns.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe. Times are of now_ns().
class AtomicQuantum {
public:
    /// While one lives, a thread of this node is in the runtime for an atomic or a fault: others
    /// need not wait for it.
    class Stop {
    public:
        explicit Stop(AtomicQuantum& quantum) noexcept : quantum_(quantum) {
            quantum_.stops_.fetch_add(1, std::memory_order_relaxed);
        }
        Stop(const Stop&) = delete;
        Stop& operator=(const Stop&) = delete;
        ~Stop() { quantum_.stops_.fetch_sub(1, std::memory_order_relaxed); }

    private:
        AtomicQuantum& quantum_;
    };
    /// Likewise, and notes how long it was, where that is asked for.
    class SlowPart {
    public:
        explicit SlowPart(AtomicQuantum& quantum) noexcept
            : quantum_(quantum.is_in_use() ? &quantum : nullptr) {
            if (quantum_ == nullptr) return;
            begun_ns_ = now_ns();
            stop_.emplace(quantum);
        }
        SlowPart(const SlowPart&) = delete;
        SlowPart& operator=(const SlowPart&) = delete;
        ~SlowPart() {
            if (quantum_ != nullptr) quantum_->note_slow(now_ns() - begun_ns_);
        }

    private:
        AtomicQuantum* quantum_;
        std::uint64_t begun_ns_ = 0;
        std::optional<Stop> stop_;
    };
    /// Whether it has ever held back.
    bool is_in_use() const noexcept { return load(begun_ns_) != 0; }
    bool is_stopped() const noexcept { return stops_.load(std::memory_order_relaxed) != 0; }

    /// @param made  so many since the last call that changed something
    void note_atomics(std::uint64_t now, std::uint64_t made) noexcept {
        store(last_ns_, now);
        store(last_tick_, 0);
        store(made_, load(made_) + made);
    }
    /// Likewise, where no clock can be read: it may use the program's vectors.
    void note_atomics_now(std::uint64_t made) noexcept {
        store(last_tick_, __builtin_ia32_rdtsc());
        store(made_, load(made_) + made);
    }
    /// Whether there were many since it went on: more than it takes to hand something over.
    bool has_made_many() const noexcept { return load(made_) >= many; }
    /// So long an atomic or a fault took that met another node.
    void note_slow(std::uint64_t ns) noexcept { store(slow_ns_, load(slow_ns_) + ns); }
    /// Whether the last one was just now.
    bool is_in_row(std::uint64_t now) const noexcept {
        return turns_of_this_thread() != nullptr || since_last(now) <= gap_ns;
    }
    bool is_dense(std::uint64_t now) const noexcept { return since_last(now) <= idle_ns; }

    /// Another node wants a held block: whether this node goes on. A simulated one never does.
    bool goes_on(std::uint64_t now) noexcept {
        if (turns_of_this_thread() != nullptr || is_stopped() || holds_back() || !is_dense(now))
            return false;
        const std::uint64_t since = load(wanted_ns_);
        if (since == 0) store(wanted_ns_, now);
        return since == 0 || now - since < length_ns();
    }
    /// It lets `other` go on, and holds back its next atomic.
    void end(std::uint64_t now, std::optional<NodeId> other) noexcept {
        const std::uint64_t spent = now - load(begun_ns_), slow = load(slow_ns_);
        std::uint64_t length = length_ns();
        if (2 * slow > spent) {
            length = std::min(2 * length, longest_ns);
        } else if (4 * slow < spent) {
            length = std::max(length / 2, shortest_ns);
        }
        store(length_ns_, length);
        store(wanted_ns_, 0);
        if (other) other_.store(other->value + 1, std::memory_order_relaxed);
    }
    bool holds_back() const noexcept { return other_.load(std::memory_order_relaxed) != 0; }
    /// For whom it holds back, from now on no more.
    std::optional<NodeId> take_other() noexcept {
        if (!holds_back()) return std::nullopt;
        const std::uint32_t other = other_.exchange(0, std::memory_order_relaxed);
        return other == 0 ? std::nullopt : std::optional{NodeId{other - 1}};
    }
    /// It goes on.
    void begin(std::uint64_t now) noexcept {
        store(begun_ns_, now);
        store(made_, 0);
        store(slow_ns_, 0);
        store(wanted_ns_, 0);
    }
    std::uint64_t length_ns() const noexcept { return load(length_ns_); }
    /// So long it holds back at most: each other node that makes atomics may take a quantum, but
    /// what one waits for is not to grow with the job.
    std::uint64_t longest_pause_ns(unsigned nodes) const noexcept {
        return std::min(nodes - 1, quanta_of_others_max) * length_ns();
    }
    /// So long the other node makes no atomic when it has paused. Where quanta are long, what it
    /// brings anew between two of them takes long.
    std::uint64_t idle_of_other_ns() const noexcept { return std::max(idle_ns, length_ns() / 16); }

    /// Without an atomic: a node that has gone on does something else.
    static constexpr std::uint64_t idle_ns = 20'000;
    static constexpr std::uint64_t gap_ns = 5'000;

private:
    static constexpr std::uint64_t many = 32;
    static constexpr unsigned quanta_of_others_max = 8;
    static constexpr std::uint64_t shortest_ns = 100'000, longest_ns = 80'000'000;

    // Relaxed: a value that another thread overwrites is lost.
    static std::uint64_t load(const std::atomic<std::uint64_t>& value) noexcept {
        return value.load(std::memory_order_relaxed);
    }
    static void store(std::atomic<std::uint64_t>& value, std::uint64_t to) noexcept {
        value.store(to, std::memory_order_relaxed);
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
    /// Its number + 1. Each atomic looks at it: it lies apart from what many of them write.
    alignas(64) std::atomic<std::uint32_t> other_{0};
    alignas(64) std::atomic<std::uint32_t> stops_{0};
    std::atomic<std::uint64_t> last_tick_{0};  ///< of the last, where no clock was read; 0: it was
    std::atomic<std::uint64_t> last_ns_{0}, made_{0}, begun_ns_{0}, wanted_ns_{0}, slow_ns_{0};
    std::atomic<std::uint64_t> length_ns_{shortest_ns};
};

}  // namespace hiroba::dsm
