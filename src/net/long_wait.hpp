// SPDX-License-Identifier: BSD-3-Clause
// Role: how a wait that looks again and again learns that it has taken long, at the price of a
// count: it reads the clock at few looks.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace hiroba::net {

inline constexpr std::uint64_t second_ns = 1'000'000'000;

/// How many seconds a wait may take: HIROBA_WAIT_TIMEOUT; 0: any.
std::uint64_t wait_limit_s() noexcept;

/// One wait. Owned by the waiting thread.
class LongWait {
public:
    explicit LongWait(std::uint64_t after_ns) noexcept : after_ns_(after_ns) {}

    /// At each look that found nothing: whether some `after_ns` have passed since the first ones.
    /// A thread that waits looks ten times a second at least.
    bool is_long() noexcept {
        if (++looks_ % looks_per_clock != 0) [[likely]]
            return false;
        const std::uint64_t now = now_ns();
        if (since_ns_ == 0) since_ns_ = now;
        return now - since_ns_ >= after_ns_;
    }

private:
    static constexpr std::uint32_t looks_per_clock = 8;

    std::uint64_t after_ns_;
    std::uint64_t since_ns_ = 0;  ///< 0: the clock was not read yet
    std::uint32_t looks_ = 0;
};

}  // namespace hiroba::net
