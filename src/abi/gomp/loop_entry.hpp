// SPDX-License-Identifier: BSD-3-Clause
// Role: turns the arguments of the loop entry points into a Loop, for both kinds of variable.
// Invariant: signed values travel as their two's complement.
#pragma once

#include <cstdarg>
#include <cstdint>

#include "abi/gomp/runtime.hpp"
#include "omp/loop/doacross.hpp"

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

/// Sections are a dynamic loop over 1 to count, one at a time.
inline omp::Loop sections_loop(unsigned count) noexcept {
    auto loop = unsigned_loop(true, 1, std::uint64_t{count} + 1, 1, omp::Schedule::dynamic, 1);
    loop.sections = true;
    return loop;
}

/// Begins what a worksharing construct may have besides: task reductions, and memory that its
/// threads share, whose size stands where its address will go.
inline void start_extras(std::uintptr_t* reductions, void** memory) noexcept {
    if (reductions != nullptr) runtime().start_shared_reductions(reductions);
    if (memory != nullptr)
        *memory = runtime().loop_memory(reinterpret_cast<std::uintptr_t>(*memory));
}

/// Reads the flags of a parallel construct: the low bits are a proc_bind clause.
inline void read_flags(unsigned flags) noexcept {
    if ((flags & 7) != 0) runtime().want_binding(static_cast<omp::ProcBind>(flags & 7));
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

/// The same with extras. `first` may be null: the thread asks for its first chunk later.
template <class Number>
bool start_general(const omp::Loop& loop, Number* first, Number* end, std::uintptr_t* reductions,
                   void** memory) noexcept {
    start_extras(reductions, memory);
    runtime().loop_start(loop);
    return first == nullptr || next_chunk(first, end);
}

/// Starts a doacross nest.
///
/// @param counts  iterations of each of its loops, which count from 0
/// @param first   where the first chunk goes; null: the thread asks for it later
template <class Number>
bool start_doacross(unsigned dimensions, const Number* counts, omp::Schedule schedule, Number chunk,
                    Number* first, Number* end) noexcept {
    static_assert(sizeof(Number) == sizeof(std::uint64_t));
    runtime().doacross_start({reinterpret_cast<const std::uint64_t*>(counts), dimensions}, schedule,
                             chunk > 0 ? static_cast<std::uint64_t>(chunk) : 0);
    return first == nullptr || next_chunk(first, end);
}

/// Waits for the iteration whose number in the outermost loop is `first`; `rest` has the others.
template <class Number>
void doacross_wait(Number first, va_list rest) noexcept {
    std::uint64_t at[omp::Doacross::dimensions_max];
    const std::size_t dimensions = runtime().doacross_dimensions();
    at[0] = static_cast<std::uint64_t>(first);
    for (std::size_t i = 1; i < dimensions; ++i)
        at[i] = static_cast<std::uint64_t>(va_arg(rest, Number));
    runtime().doacross_wait(at);
}

}  // namespace hiroba::abi
