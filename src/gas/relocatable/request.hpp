// SPDX-License-Identifier: BSD-3-Clause
// Role: one-sided requests of net with a waiting thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fatal.hpp"
#include "net/async.hpp"

namespace hiroba::gas {

/// Makes a request until there is room for it; polls meanwhile. Not from handlers.
template <class Try>
void submit(net::Async& async, Try&& attempt) {
    net::Submission made;
    while ((made = attempt()) == net::Submission::again) {
        if (!async.endpoint().poll()) yield();
    }
    HIROBA_INVARIANT(made == net::Submission::accepted, "a request of the space was refused");
}

/// Requests under way. Outlives them; wait() before it ends.
class Request {
public:
    template <class Try>
    void issue(net::Async& async, Try&& attempt) {
        issued_++;
        submit(async, [&] { return attempt(net::Callback{&Request::finished, this}); });
    }
    bool done() const noexcept { return ended_.load(std::memory_order_acquire) == issued_; }
    /// False: a peer was lost, whose requests may or may not have happened. After done().
    bool good() const noexcept { return !failed_.load(std::memory_order_relaxed); }
    bool wait(net::Async& async) {
        async.wait_until([this] { return done(); });
        return good();
    }

private:
    static void finished(void* self, net::Outcome outcome) noexcept {
        auto& request = *static_cast<Request*>(self);
        if (outcome != net::Outcome::done) request.failed_.store(true, std::memory_order_relaxed);
        // Release, pairs with done(): what the request brought is there. The last touch.
        request.ended_.fetch_add(1, std::memory_order_release);
    }
    std::uint32_t issued_ = 0;
    std::atomic<std::uint32_t> ended_{0};
    std::atomic<bool> failed_{false};
};

}  // namespace hiroba::gas
