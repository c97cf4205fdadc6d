// SPDX-License-Identifier: BSD-3-Clause
#include "net/provider/udp/sleep_control.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "net/provider/udp/peer.hpp"

namespace hiroba::net::udp {
namespace {

constexpr std::uint64_t service_look_ns = 1'000'000;
constexpr std::uint64_t service_late_ns = 1'000'000;
static_assert(service_late_ns >= service_look_ns);  // else each datagram sent would ring for it

}  // namespace

void SleepControl::sleep(Sleeper role, const Socket& socket, std::uint64_t timeout_ns,
                         bool (*ready)(void*), void* argument) noexcept {
    struct Waiter {
        SleepControl* self;
        bool (*ready)(void*);
        void* argument;
    } waiter{this, ready, argument};
    const auto any = [](void* opaque) {
        const Waiter& waiter = *static_cast<Waiter*>(opaque);
        return waiter.ready(waiter.argument) ||
               waiter.self->unfinished_.load(std::memory_order_acquire);  // end_poll()
    };
    const std::uint64_t now = now_ns();
    bool watches = true;
    if (role == Sleeper::service) {
        watches = !polls_.others_polled();
        if (!watches) timeout_ns = std::min(timeout_ns, service_look_ns);
    }
    if (watches) {
        const std::uint64_t deadline = next_deadline_ns_.load(std::memory_order_acquire);
        timeout_ns = std::min(timeout_ns, deadline > now ? deadline - now : 0);
        if (owes_.load(std::memory_order_acquire)) {  // end_poll()
            timeout_ns = std::min(timeout_ns, acknowledge_late_ns);
        }
    }
    const bool serves = role == Sleeper::service;
    if (serves) {
        // Before the announcement; pairs with note_deadline(), which rings if this is too late.
        service_until_ns_.store(now + timeout_ns, std::memory_order_release);
    }
    const Sleepers::Watched watched{watches ? socket.fd() : -1, serves ? socket.bell_fd() : -1};
    if (sleepers(role).sleep(watched, timeout_ns, any, &waiter)) {
        bell_rang_.store(true, std::memory_order_relaxed);
    }
    if (serves) service_until_ns_.store(0, std::memory_order_relaxed);
}

void SleepControl::note_deadline(std::uint64_t deadline_ns) noexcept {
    if (deadline_ns >= next_deadline_ns_.load(std::memory_order_relaxed)) return;
    next_deadline_ns_.store(deadline_ns, std::memory_order_seq_cst);  // pairs with sleep()
    if (service_until_ns_.load(std::memory_order_seq_cst) > deadline_ns + service_late_ns) {
        service_until_ns_.store(0, std::memory_order_relaxed);
        service_.ring();
    }
}

}  // namespace hiroba::net::udp
