// SPDX-License-Identifier: BSD-3-Clause
// Role: virtual nanoseconds as the C library's clocks show them. The day is the same in every run.
#pragma once

#include <time.h>

#include <cstdint>

namespace hiroba::abi::sim {

inline constexpr std::uint64_t second_ns = 1'000'000'000;
inline constexpr std::uint64_t first_second = 1'767'225'600;  ///< 2026-01-01, of CLOCK_REALTIME

inline bool counts_from_1970(clockid_t clock) noexcept {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

inline timespec time_of(clockid_t clock, std::uint64_t ns) noexcept {
    const std::uint64_t seconds = ns / second_ns + (counts_from_1970(clock) ? first_second : 0);
    return {static_cast<time_t>(seconds), static_cast<long>(ns % second_ns)};
}

inline std::uint64_t ns_of(const timespec& time) noexcept {
    if (time.tv_sec < 0) return 0;
    return static_cast<std::uint64_t>(time.tv_sec) * second_ns +
           static_cast<std::uint64_t>(time.tv_nsec);
}

/// The virtual time at which `clock` shows `time`.
inline std::uint64_t virtual_ns(clockid_t clock, const timespec& time) noexcept {
    const std::uint64_t begin = counts_from_1970(clock) ? first_second * second_ns : 0;
    const std::uint64_t ns = ns_of(time);
    return ns > begin ? ns - begin : 0;
}

}  // namespace hiroba::abi::sim
