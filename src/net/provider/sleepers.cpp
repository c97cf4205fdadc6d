// SPDX-License-Identifier: BSD-3-Clause
// Role: see sleepers.hpp.
#include "net/provider/sleepers.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/own_descriptors.hpp"

// GCC's thread sanitizer knows no fences and says so at each; what it then reports is judged by
// hand.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

namespace hiroba::net {
namespace {

constexpr std::uint64_t without_bell_ns = 1'000'000;  // when there are more sleepers than bells

}  // namespace

Sleepers::~Sleepers() {
    for (Bell& bell : bells_) {
        const int fd = bell.fd.load(std::memory_order_relaxed);
        if (fd >= 0) close_kept_descriptor(fd);
    }
}

Sleepers::Bell* Sleepers::take_bell() noexcept {
    for (Bell& bell : bells_) {
        // Acquire, pairs with the release at the end of sleep(): the bell is silent again.
        if (bell.taken.load(std::memory_order_relaxed) ||
            bell.taken.exchange(true, std::memory_order_acquire)) {
            continue;
        }
        if (bell.fd.load(std::memory_order_relaxed) >= 0) return &bell;
        const int fd = keep_new_descriptor([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
        bell.fd.store(fd, std::memory_order_relaxed);
        if (fd >= 0) return &bell;
        bell.taken.store(false, std::memory_order_release);
        return nullptr;
    }
    return nullptr;
}

bool Sleepers::sleep(Watched sockets, std::uint64_t timeout_ns, bool (*ready)(void*),
                     void* argument) noexcept {
    const int saved_errno = errno;
    Bell* const bell = take_bell();
    if (bell == nullptr) timeout_ns = std::min(timeout_ns, without_bell_ns);
    if (bell != nullptr) {
        // Release, pairs with ring(): whoever sees the announcement sees the bell.
        bell->announced.store(true, std::memory_order_release);
        announced_.fetch_add(1, std::memory_order_seq_cst);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in ring()
    bool rung = true, knocked = false;
    if (!ready(argument)) {
        pollfd watched[3] = {
            {bell != nullptr ? bell->fd.load(std::memory_order_relaxed) : -1, POLLIN, 0},
            {sockets.socket, POLLIN, 0},
            {sockets.bell, POLLIN, 0}};
        const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000u),
                               static_cast<long>(timeout_ns % 1'000'000'000u)};
        ppoll(watched, 3, &timeout, nullptr);
        rung = watched[0].revents != 0;
        knocked = watched[2].revents != 0;
    }
    if (bell != nullptr) {
        announced_.fetch_sub(1, std::memory_order_relaxed);
        bell->announced.store(false, std::memory_order_relaxed);
        // A ring that comes after ppoll() wakes the bell's next sleeper for nothing.
        std::uint64_t rings = 0;
        [[maybe_unused]] const ssize_t silenced =
            rung ? read(bell->fd.load(std::memory_order_relaxed), &rings, sizeof rings) : 0;
        bell->taken.store(false, std::memory_order_release);  // pairs with take_bell()
    }
    errno = saved_errno;
    return knocked;
}

void Sleepers::ring() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in sleep()
    if (announced_.load(std::memory_order_relaxed) == 0) return;
    const int saved_errno = errno;
    const std::uint64_t once = 1;
    for (Bell& bell : bells_) {
        if (!bell.announced.load(std::memory_order_acquire)) continue;  // pairs with sleep()
        // Fails only where the bell rings already.
        [[maybe_unused]] const ssize_t written =
            write(bell.fd.load(std::memory_order_relaxed), &once, sizeof once);
    }
    errno = saved_errno;
}

}  // namespace hiroba::net
