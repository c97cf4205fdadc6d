// SPDX-License-Identifier: BSD-3-Clause
// Role: the barrier of all ranks: in round k each signals the node 2^k ahead and waits for the one
// 2^k behind. Source: Hensgen, Finkel & Manber, IJPP 17(1), 1988 (dissemination barrier).
// Invariant: signals are counted, so one that comes early is not lost; a node is ahead of another
// by one barrier at most. A node talks to log2(nodes) others, whatever the size of the job.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "gas/delegate.hpp"
#include "net/net.hpp"

namespace hiroba::acp {

/// wait(): any thread, one after the other; each call is one barrier.
class Barrier {
public:
    explicit Barrier(net::Endpoint& endpoint) : endpoint_(endpoint) {}

    void wait(gas::Delegate& delegate);
    /// DelegateHooks::signalled: `round` as sent by wait() elsewhere. False: no such round.
    bool signalled(std::uint64_t round) noexcept;

private:
    static constexpr std::uint32_t rounds_max = 20;

    net::Endpoint& endpoint_;
    std::mutex one_at_a_time_;
    std::uint64_t barriers_ = 0;
    std::array<std::atomic<std::uint64_t>, rounds_max> arrived_{};
};

}  // namespace hiroba::acp
