// SPDX-License-Identifier: BSD-3-Clause
// Role: a wait that ends by itself, for what another node is expected to do soon.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/latch.hpp"
#include "base/turns.hpp"

namespace hiroba::dsm {

/// Thread: its maker's. Where threads are simulated, where no clock need go on, it is one pause
/// long.
class BoundedWait {
public:
    BoundedWait(std::uint64_t begin_ns, std::uint64_t longest_ns) noexcept
        : begin_ns_(begin_ns), now_ns_(begin_ns), longest_ns_(longest_ns) {}
    std::uint64_t now() const noexcept { return now_ns_; }
    bool is_over() const noexcept {
        return now_ns_ - begin_ns_ >= longest_ns_ || (paused_ && turns_of_this_thread() != nullptr);
    }
    void pause() noexcept {
        backoff_.pause();
        paused_ = true;
        now_ns_ = hiroba::now_ns();
    }

private:
    Backoff backoff_;
    std::uint64_t begin_ns_, now_ns_, longest_ns_;
    bool paused_ = false;
};

}  // namespace hiroba::dsm
