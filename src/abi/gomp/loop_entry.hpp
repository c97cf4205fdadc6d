// SPDX-License-Identifier: BSD-3-Clause
// Role: turns the arguments of the loop entry points into a Loop, for both kinds of variable.
// Invariant: signed values travel as their two's complement.
#pragma once

#include <cstdint>

#include "abi/gomp/runtime.hpp"

namespace hiroba::abi {

inline omp::Loop signed_loop(long start, long end, long step, omp::Schedule schedule, long chunk,
                             bool ordered = false) noexcept {
    omp::Loop loop;
    loop.up = step > 0;
    loop.start = static_cast<std::uint64_t>(start);
    loop.end = static_cast<std::uint64_t>(end);
    loop.step = static_cast<std::uint64_t>(step);
    loop.schedule = schedule;
    loop.chunk = chunk > 0 ? static_cast<std::uint64_t>(chunk) : 0;
    loop.ordered = ordered;
    return loop;
}

inline omp::Loop unsigned_loop(bool up, unsigned long long start, unsigned long long end,
                               unsigned long long step, omp::Schedule schedule,
                               unsigned long long chunk, bool ordered = false) noexcept {
    omp::Loop loop;
    loop.up = up;
    loop.start = start;
    loop.end = end;
    loop.step = step;
    loop.is_unsigned = true;
    loop.schedule = schedule;
    loop.chunk = chunk;
    loop.ordered = ordered;
    return loop;
}

/// The schedule in an entry point's number: its low bits, without the monotonic modifier.
inline omp::Schedule schedule_of(long number) noexcept {
    return static_cast<omp::Schedule>(number & 7);
}

/// `Number` is long or unsigned long long.
template <class Number>
bool next_chunk(Number* first, Number* end) noexcept {
    std::uint64_t chunk_first = 0, chunk_end = 0;
    if (!runtime().loop_next(&chunk_first, &chunk_end)) return false;
    *first = static_cast<Number>(chunk_first);
    *end = static_cast<Number>(chunk_end);
    return true;
}

template <class Number>
bool start_loop(const omp::Loop& loop, Number* first, Number* end) noexcept {
    runtime().loop_start(loop);
    return next_chunk(first, end);
}

}  // namespace hiroba::abi
