// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node knows of threads that wait for others' writes by plain loads (node_spins.cpp).
// Invariant: hints, all of them: they decide when something is looked at, never what is read. So
// relaxed, and no latch.
#pragma once

#include <atomic>
#include <cstdint>

namespace hiroba::dsm {

/// The waits of a node. Thread: any; async-signal-safe.
class Spins {
public:
    /// A thread here or elsewhere was seen to wait so.
    void note_seen(std::uint64_t now_ns) noexcept { set(seen_at_ns_, now_ns); }
    /// Whether that was a short while ago.
    bool are_seen(std::uint64_t now_ns) const noexcept {
        constexpr std::uint64_t remembered_ns = 100'000'000;
        const std::uint64_t last = get(seen_at_ns_);
        return last != 0 && now_ns - last < remembered_ns;
    }
    /// Whether the other nodes are to be told of one here, which is then taken to be done.
    bool tells_others(std::uint64_t now_ns) noexcept {
        constexpr std::uint64_t between_ns = 5'000'000;
        if (now_ns - get(told_at_ns_) < between_ns) return false;
        set(told_at_ns_, now_ns);
        return true;
    }
    /// The background flusher has acquired something.
    void note_acquired_aside(std::uint64_t now_ns) noexcept { set(acquired_aside_ns_, now_ns); }
    /// Whether what it made stale is read at once. What is read later may be read behind a
    /// synchronization of the program.
    bool is_behind_aside(std::uint64_t now_ns) const noexcept {
        constexpr std::uint64_t at_once_ns = 100'000;
        return now_ns - get(acquired_aside_ns_) < at_once_ns;
    }

private:
    friend class NodeView;

    using Time = std::atomic<std::uint64_t>;
    static std::uint64_t get(const Time& time) noexcept {
        return time.load(std::memory_order_relaxed);
    }
    static void set(Time& time, std::uint64_t ns) noexcept {
        time.store(ns, std::memory_order_relaxed);
    }

    Time seen_at_ns_{0};         ///< 0: none ever
    Time told_at_ns_{0};         ///< when the others were last told of one here
    Time acquired_aside_ns_{0};  ///< when the background flusher last acquired
};

}  // namespace hiroba::dsm
