// SPDX-License-Identifier: BSD-3-Clause
// Role: see engine.hpp; the executors beside the progress role, each its own completer.
// Source: Endo & Taura, low-level communication layer, section 3.2 (several executors and
// completers, for several queue pairs).
//
// What executor k does not see the progress role does all the same: poll() tells completions of all
// sets of queues. So an executor may sleep with requests of its own under way; that it does not,
// but looks again after a nap, is for their latency.
//
// No wake-up is lost: an executor reads its bell, then sets the sleeping flags of its queues, then
// sleeps while the bell is as it was. Who queues a command and finds the flag rings after that.
#include <time.h>

#include <algorithm>

#include "base/service_thread.hpp"
#include "base/short_slice.hpp"
#include "net/offload/engine.hpp"
#include "net/wait_budget.hpp"

namespace hiroba::net::offload {
namespace {

/// Between looks at what is under way, and at a provider that had no room.
constexpr long nap_ns = 100'000;

}  // namespace

void Engine::start_executors() {
    for (std::uint32_t number = 1; number < executors_count_; ++number)
        executors_.push_back(std::make_unique<Executor>());
    for (std::uint32_t number = 1; number < executors_count_; ++number) {
        executors_[number - 1]->thread =
            start_service_thread("executes requests", [this, number] { run_executor(number); });
    }
}

Engine::~Engine() {
    stopping_.store(true, std::memory_order_release);  // pairs with run_executor()
    for (std::uint32_t number = 1; number <= executors_.size(); ++number) wake_executor(number);
    for (const auto& executor : executors_) executor->thread.join();
}

void Engine::wake_executor(std::uint32_t number) noexcept {
    if (number == 0) return wake_service();
    executors_[number - 1]->bell.ring();
}

void Engine::run_executor(std::uint32_t number) noexcept {
    ask_for_short_slices(ShortSlice::of_service);
    CoreShortage shortage;
    WaitBudget budget{shortage};
    Bell& bell = executors_[number - 1]->bell;
    while (true) {
        const std::uint32_t rung = bell.rings();
        if (stopping_.load(std::memory_order_acquire)) return;  // ~Engine()
        bool stuck = false;
        const bool executed = execute_queues(number, stuck) != 0;
        // A callback may have made true what another thread sleeps for.
        if (executed) endpoint_.wake_local();
        if (endpoint_.poll_own() || executed) {
            budget.renew();
            continue;
        }
        if (budget.pass()) continue;
        if (stuck || in_flight_.load(std::memory_order_relaxed) != 0) {  // a hint
            const timespec nap{0, nap_ns};
            nanosleep(&nap, nullptr);
        } else if (queues_may_sleep(number)) {
            bell.sleep_past(rung);
        }
        queues_awake(number);
        budget.slept();
    }
}

/// Flags set before one that cannot be are taken away by queues_awake().
bool Engine::queues_may_sleep(std::uint32_t executor) noexcept {
    for (std::size_t i = executor; i < queues_.size(); i += executors_count_)
        if (!queues_[i]->sleep_if_empty()) return false;
    return true;
}

void Engine::queues_awake(std::uint32_t executor) noexcept {
    for (std::size_t i = executor; i < queues_.size(); i += executors_count_) queues_[i]->awake();
}

}  // namespace hiroba::net::offload
