// SPDX-License-Identifier: BSD-3-Clause
// Role: tells the service thread, which is about to sleep, whether other threads have polled since
// it slept last. While they poll they serve the peers, and a service thread that asked to be woken
// by each arrival would only cost them their core; so it does not watch the device then, and looks
// up after a time limit whether they still poll. One that does watch the device is called away from
// it by a thread that polls on.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace hiroba::net {

class PollWatch {
public:
    /// Thread: the poller, one at a time. The service thread takes the count as a hint, so a lost
    /// update only has it watch the device once.
    /// Returns whether the service thread watches the device beside this poller, once for each
    /// watch_device(): the caller rings it.
    bool count_poll() noexcept {
        if (service_thread_.load(std::memory_order_relaxed) == pthread_self()) return false;
        const std::uint64_t polls = polls_.load(std::memory_order_relaxed) + 1;
        polls_.store(polls, std::memory_order_relaxed);
        if (polls < unwatch_at_.load(std::memory_order_relaxed)) [[likely]]
            return false;
        unwatch_at_.store(never, std::memory_order_relaxed);
        return true;
    }
    /// The service thread is about to sleep until the device tells of something. Thread: the
    /// service thread.
    void watch_device() noexcept {
        unwatch_at_.store(seen_ + polls_beside_watcher, std::memory_order_relaxed);
    }
    void unwatch_device() noexcept { unwatch_at_.store(never, std::memory_order_relaxed); }
    /// Whether others have polled so often since watch_device() that the service thread was called
    /// away. Thread: the service thread.
    bool called_away() const noexcept {
        return unwatch_at_.load(std::memory_order_relaxed) == never;
    }
    /// Whether others have polled since the last call. Thread: the service thread.
    bool others_polled() noexcept {
        service_thread_.store(pthread_self(), std::memory_order_relaxed);
        const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
        return std::exchange(seen_, polls) != polls;
    }

private:
    /// A thread that polls this often is likely to go on.
    static constexpr std::uint64_t polls_beside_watcher = 32;
    static constexpr std::uint64_t never = ~std::uint64_t{0};

    std::atomic<std::uint64_t> polls_{0};           ///< of others than the service thread
    std::atomic<std::uint64_t> unwatch_at_{never};  ///< the count of polls
    std::atomic<pthread_t> service_thread_{};
    std::uint64_t seen_ = 0;  ///< service thread
};

}  // namespace hiroba::net
