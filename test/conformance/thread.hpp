// SPDX-License-Identifier: BSD-3-Clause
// Role: a thread of a test's node: one of the process, or a simulated one where the node is.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "net/provider/sim/scheduler.hpp"

namespace hiroba::conformance {

/// As std::thread. Made by a thread of the node.
class Thread {
public:
    Thread() = default;
    template <class Body, class... Arguments>
    explicit Thread(Body&& body, Arguments&&... arguments) {
        auto call = std::bind(std::forward<Body>(body), std::forward<Arguments>(arguments)...);
        if (auto* scheduler = net::sim::Scheduler::current()) {
            simulated_ = &scheduler->spawn(scheduler->running().node, std::move(call));
        } else {
            real_ = std::thread(std::move(call));
        }
    }
    bool joinable() const noexcept { return simulated_ != nullptr || real_.joinable(); }
    void join() {
        if (simulated_ == nullptr) return real_.join();
        net::sim::Scheduler::current()->join(*simulated_);
        simulated_ = nullptr;
    }

private:
    std::thread real_;
    net::sim::Fiber* simulated_ = nullptr;
};

}  // namespace hiroba::conformance
