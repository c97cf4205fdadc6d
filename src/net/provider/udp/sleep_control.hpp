// SPDX-License-Identifier: BSD-3-Clause
// Role: how this node's threads sleep over udp, and what a poll tells those that are about to.
// Invariant: a thread goes to sleep only if nothing is unfinished, and wakes before the next packet
// must be sent again: sleep() announces itself and then looks, poll() writes and then rings.
//
// The service thread sleeps in one of two ways. While other threads poll they serve the peers, and
// waking it with every datagram would only cost them their core: it watches the bell, where a peer
// that hears nothing knocks, and looks up once a millisecond whether they still poll. Otherwise it
// watches the socket like everybody else, until the next packet must be sent again.
#pragma once

#include <atomic>
#include <cstdint>

#include "net/provider/poll_watch.hpp"
#include "net/provider/provider.hpp"
#include "net/provider/sleepers.hpp"
#include "net/provider/udp/socket.hpp"

namespace hiroba::net::udp {

using Sleeper = Provider::Sleeper;

class SleepControl {
public:
    /// As Provider::sleep(). Thread: any, without the provider's latch.
    void sleep(Sleeper role, const Socket& socket, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept;
    /// Wakes those of a role that sleep or are about to. Thread: any.
    void ring(Sleeper role) noexcept { sleepers(role).ring(); }

    // --- by the poller, under the provider's latch -----------------------------------------------

    void count_poll() noexcept { polls_.count_poll(); }
    /// The bell's socket was readable: a hint.
    bool bell_rang() const noexcept { return bell_rang_.load(std::memory_order_relaxed); }
    void silence_bell() noexcept { bell_rang_.store(false, std::memory_order_relaxed); }

    /// When the next packet must be sent again; all ones: none. Those noted since the last reset.
    std::uint64_t deadline_ns() const noexcept {
        return next_deadline_ns_.load(std::memory_order_relaxed);
    }
    void reset_deadline() noexcept {
        next_deadline_ns_.store(~std::uint64_t{0}, std::memory_order_relaxed);
    }
    /// Rings for the service thread if it would sleep too long.
    void note_deadline(std::uint64_t deadline_ns) noexcept;

    /// The next poll must not be waited for.
    void note_unfinished() noexcept { unfinished_.store(true, std::memory_order_release); }
    /// At the end of a poll. Release: whoever sees something left comes back to poll, at once or
    /// soon.
    /// @param owes  acknowledgements that have a little time
    void end_poll(bool unfinished, bool owes) noexcept {
        owes_.store(owes, std::memory_order_release);
        unfinished_.store(unfinished, std::memory_order_release);
    }

private:
    Sleepers& sleepers(Sleeper role) noexcept {
        return role == Sleeper::service ? service_ : waiters_;
    }

    std::atomic<std::uint64_t> next_deadline_ns_{~std::uint64_t{0}};
    std::atomic<bool> unfinished_{false};
    std::atomic<bool> owes_{false};
    std::atomic<bool> bell_rang_{false};
    Sleepers waiters_, service_;
    PollWatch polls_;
    std::atomic<std::uint64_t> service_until_ns_{0};
};

}  // namespace hiroba::net::udp
