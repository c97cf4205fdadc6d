// SPDX-License-Identifier: BSD-3-Clause
// Role: tells the service thread, which is about to sleep, whether other threads have polled since
// it slept last. While they poll they serve the peers, and a service thread that asked to be woken
// by each arrival would only cost them their core; so it does not watch the device then, and looks
// up after a time limit whether they still poll.
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
    void count_poll() noexcept {
        if (service_thread_.load(std::memory_order_relaxed) == pthread_self()) return;
        polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    /// Whether others have polled since the last call. Thread: the service thread.
    bool others_polled() noexcept {
        service_thread_.store(pthread_self(), std::memory_order_relaxed);
        const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
        return std::exchange(seen_, polls) != polls;
    }

private:
    std::atomic<std::uint64_t> polls_{0};  ///< of others than the service thread
    std::atomic<pthread_t> service_thread_{};
    std::uint64_t seen_ = 0;  ///< service thread
};

}  // namespace hiroba::net
