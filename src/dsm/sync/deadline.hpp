// SPDX-License-Identifier: BSD-3-Clause
// Role: until when a program is willing to wait.
// Invariant: the time is that of the clock the program named, also when that clock is set.
#pragma once

#include <time.h>

#include <cstdint>

namespace hiroba::dsm {

/// An absolute time of `clock`. `time.tv_nsec` is 0 to 999'999'999.
struct Deadline {
    clockid_t clock = CLOCK_REALTIME;
    timespec time{};

    /// Nanoseconds until then; 0 when it is over.
    std::uint64_t left_ns() const noexcept {
        timespec now{};
        clock_gettime(clock, &now);
        const std::int64_t seconds_max = 1'000'000;  // Asked again long before.
        const std::int64_t seconds = time.tv_sec - now.tv_sec;
        if (seconds > seconds_max) return seconds_max * 1'000'000'000u;
        if (seconds < -1) return 0;
        const std::int64_t ns = seconds * 1'000'000'000 + (time.tv_nsec - now.tv_nsec);
        return ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
    }
};

}  // namespace hiroba::dsm
