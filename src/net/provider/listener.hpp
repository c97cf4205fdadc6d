// SPDX-License-Identifier: BSD-3-Clause
// Role: a thread that sleeps at one provider for threads that sleep at another, and rings for them:
// nothing can sleep on both devices at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/ids.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net {

/// Where and under which number threads of this node sleep.
struct SleepingPlace {
    Provider* provider = nullptr;
    NodeId self;  ///< this node's number there
};

/// Thread: start() and stop() from one; polled() from any.
class Listener {
public:
    /// @param device  where the thread sleeps; this node is `self` there
    /// @param sleepers  woken when something may have come to `device`
    void start(const char* purpose, Provider& device, NodeId self, SleepingPlace sleepers);
    /// Before either provider goes.
    void stop() noexcept;
    /// `device` is being polled: whoever does is awake.
    void polled() noexcept { polls_.fetch_add(1, std::memory_order_relaxed); }

private:
    void listen() noexcept;

    Provider* device_ = nullptr;
    NodeId self_;
    SleepingPlace sleepers_;
    std::atomic<bool> over_{false};
    std::atomic<std::uint64_t> polls_{0};
    std::thread thread_;
};

}  // namespace hiroba::net
