// SPDX-License-Identifier: BSD-3-Clause
// Role: sleeping until a datagram comes or a thread of this node rings, whichever is first.
//
// Each sleeper has a bell (an eventfd) of its own: a bell shared by several would be silenced by
// the first that wakes while another has looked but not yet gone to bed. The argument why no
// wake-up is lost is that of shm's doorbell: a ringing thread publishes, passes a
// sequentially consistent fence and looks who is announced; a sleeper announces itself, passes such
// a fence and looks once more. A bell that rings before its sleeper is in bed stays readable.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace hiroba::net {

/// The sleepers of one role on this node. Any thread; no memory is allocated.
class Sleepers {
public:
    Sleepers() = default;
    Sleepers(const Sleepers&) = delete;
    ~Sleepers();

    /// What to watch besides; -1: not.
    struct Watched {
        int socket = -1;
        int bell = -1;  ///< a socket that only the service thread looks at
    };
    /// Sleeps until rung, a socket is readable, or `timeout_ns` passed, unless `ready(argument)`
    /// says there is something already. Also returns early for no reason.
    /// @return whether the bell's socket is readable
    bool sleep(Watched sockets, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept;
    /// Wakes all that sleep or are about to; a load when there are none.
    void ring() noexcept;

private:
    static constexpr std::size_t bells_max = 64;
    struct Bell {
        std::atomic<bool> taken{false};
        std::atomic<bool> announced{false};
        std::atomic<int> fd{-1};
    };
    Bell* take_bell() noexcept;

    std::atomic<std::uint32_t> announced_{0};
    std::array<Bell, bells_max> bells_;
};

}  // namespace hiroba::net
