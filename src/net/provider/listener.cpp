// SPDX-License-Identifier: BSD-3-Clause
// Role: see listener.hpp.
#include "net/provider/listener.hpp"

#include <chrono>
#include <utility>

#include "base/clock.hpp"
#include "base/service_thread.hpp"
#include "base/short_slice.hpp"

namespace hiroba::net {
namespace {

constexpr std::uint64_t listen_ns = 100'000'000;

}  // namespace

void Listener::start(const char* purpose, Provider& device, NodeId self, SleepingPlace sleepers) {
    device_ = &device;
    self_ = self;
    sleepers_ = sleepers;
    thread_ = start_service_thread(purpose, [this] { listen(); });
}

void Listener::stop() noexcept {
    if (!thread_.joinable()) return;
    over_.store(true, std::memory_order_release);  // pairs with listen()
    device_->wake(self_, Provider::Sleeper::service);
    thread_.join();
}

void Listener::listen() noexcept {
    const auto over = [](void* opaque) {
        return static_cast<Listener*>(opaque)->over_.load(std::memory_order_acquire);  // stop()
    };
    std::uint64_t seen = ~std::uint64_t{0};
    ask_for_short_slices(ShortSlice::of_service);
    while (!over(this)) {
        const std::uint64_t from_ns = now_ns();
        const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
        // Where somebody has polled since its last sleep began, the device looks at the clock
        // only, and returns soon whether anything comes or not.
        const bool watches = std::exchange(seen, polls) == polls;
        device_->sleep(Provider::Sleeper::service, listen_ns, over, this);
        // A thread that has polled since is awake, and polls again before it sleeps.
        if (polls_.load(std::memory_order_relaxed) != polls) continue;
        // Nothing came: to wake everybody for that would cost more than all else of an idle node.
        if (!watches || now_ns() - from_ns >= listen_ns) continue;
        sleepers_.provider->wake(sleepers_.self, Provider::Sleeper::waiter);
        sleepers_.provider->wake(sleepers_.self, Provider::Sleeper::service);
        // Until they have looked, the device would say the same again.
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

}  // namespace hiroba::net
