// SPDX-License-Identifier: BSD-3-Clause
// Role: the wall clock of statistics and time limits; protocol code never reads it.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/turns.hpp"

namespace hiroba {

/// Nanoseconds of CLOCK_MONOTONIC (vDSO: about 40 ns, no system call); virtual ones where threads
/// take turns.
inline std::uint64_t now_ns() noexcept {
    if (Turns* const turns = turns_of_this_thread()) [[unlikely]]
        return turns->now_ns();
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace hiroba
