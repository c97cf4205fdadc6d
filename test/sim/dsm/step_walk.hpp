// SPDX-License-Identifier: BSD-3-Clause
// Role: a chooser that draws after each step which thread goes on: rows of steps of one thread, and
// threads that stand still for a while wherever they are.
// Invariant: ends the run where something is broken between two steps, and after `steps_max`: that
// is how a program fails in which threads wait for each other for ever.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/random.hpp"
#include "net/provider/sim/scheduler.hpp"

namespace hiroba::sim_test {

class StepWalk final : public net::sim::Chooser {
public:
    static constexpr std::uint64_t steps_max = 200'000;

    explicit StepWalk(std::uint64_t seed)
        : random_(seed * 77 + 5),
          stays_percent_(40 + static_cast<std::uint32_t>(random_.below(58))),
          stops_some_(random_.below(3) > 0) {}

    /// Has `broken` asked at every `each`-th step; what it says, if anything, ends the run.
    void check(std::uint64_t each, std::function<std::string()> broken) {
        each_ = each;
        broken_ = std::move(broken);
    }

    net::sim::Fiber* choose(std::span<net::sim::Fiber* const> ready) override {
        if (++steps_ > steps_max) failure_ = "too long: not ended after so many steps";
        if (failure_.empty() && broken_ && steps_ % each_ == 0) failure_ = broken_();
        if (!failure_.empty()) return nullptr;
        if (stops_some_ && random_.below(60) == 0) {
            stopped_ = any_of(ready)->index;
            stopped_until_ = steps_ + random_.below(300);
        }
        net::sim::Fiber* const next = draw(ready);
        last_ = next->index;
        return next;
    }

    std::uint64_t steps() const noexcept { return steps_; }
    /// Why the run was ended; empty: it was not.
    const std::string& failure() const noexcept { return failure_; }

private:
    net::sim::Fiber* any_of(std::span<net::sim::Fiber* const> ready) {
        return ready[random_.below(ready.size())];
    }
    bool is_stopped(const net::sim::Fiber& fiber) const noexcept {
        return fiber.index == stopped_ && steps_ < stopped_until_;
    }
    net::sim::Fiber* draw(std::span<net::sim::Fiber* const> ready) {
        if (random_.happens(stays_percent_)) {
            for (net::sim::Fiber* const fiber : ready) {
                if (fiber->index == last_ && !is_stopped(*fiber)) return fiber;
            }
        }
        // It may be the only one: so not for ever.
        for (int tries = 0; tries < 8; ++tries) {
            net::sim::Fiber* const fiber = any_of(ready);
            if (!is_stopped(*fiber)) return fiber;
        }
        return ready[0];
    }

    static constexpr std::uint32_t none = ~0u;

    Random random_;
    std::uint32_t stays_percent_;
    bool stops_some_;
    std::uint64_t steps_ = 0, each_ = 1;
    std::function<std::string()> broken_;
    std::string failure_;
    std::uint32_t last_ = none, stopped_ = none;
    std::uint64_t stopped_until_ = 0;
};

}  // namespace hiroba::sim_test
