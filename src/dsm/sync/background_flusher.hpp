// SPDX-License-Identifier: BSD-3-Clause
// Role: makes writes reach threads of other nodes that spin on a plain or relaxed read, which no
// hook can see: flushes now and then while a region runs on several nodes
// (docs/decisions/one-object-for-all-flushes.md).
// While a thread is seen to wait, up to a tenth of a core.
// Invariant: an extra release and acquire is always legal; the background flusher takes a fraction
// of a per cent of a core, so it comes later when there is much to publish.
#pragma once

#include <atomic>
#include <cstdint>

namespace hiroba::dsm {

class SharedMemory;

class BackgroundFlusher {
public:
    explicit BackgroundFlusher(SharedMemory& memory) : memory_(memory) {}

    /// The background flusher's thread; returns after stop(). On a private stack.
    void run() noexcept;
    void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }  // seen by run()

    /// Whether threads of other nodes may be running program code. Any thread.
    void set_active(bool active) noexcept {
        active_.store(active, std::memory_order_relaxed);  // seen by run() in its own time
    }

    /// Says that it is made active for a hurry alone: until then it looks seldom. Any thread.
    void stand_apart() noexcept { apart_.store(true, std::memory_order_relaxed); }

    static constexpr std::uint64_t shortest_ns = 1'000'000;
    static constexpr std::uint64_t shortest_in_hurry_ns = 200'000;
    static constexpr std::uint64_t longest_ns = 100'000'000;
    /// Behind a flush that had much to publish.
    static constexpr std::uint64_t longest_behind_much_ns = 1'000'000'000;
    /// How long to wait after a flush that took `took_ns`, of processor time if in a hurry. Pure.
    /// @param hurry  a thread was seen to wait for a plain write
    static std::uint64_t next_wait_ns(std::uint64_t wait_ns, bool found, std::uint64_t took_ns,
                                      bool hurry);

private:
    bool is_apart() const noexcept {
        return apart_.load(std::memory_order_relaxed) && !active_.load(std::memory_order_relaxed);
    }

    SharedMemory& memory_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> active_{false}, apart_{false};
};

}  // namespace hiroba::dsm
