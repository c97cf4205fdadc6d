// SPDX-License-Identifier: BSD-3-Clause
// Role: how a thread computes: rounding, traps, subnormal numbers, by SSE and by the x87 unit.
// Invariant: two registers of the processor, which a thread that the kernel makes has as its maker
// had them; the runtime's threads are made before main and take them over here.
#pragma once

#include <cstdint>

namespace hiroba::omp {

/// Both registers in one word: MXCSR below, the x87 unit's control word above.
using FloatingPoint = std::uint32_t;

inline FloatingPoint floating_point() noexcept {
    std::uint32_t sse = 0;
    std::uint16_t x87 = 0;
    asm volatile("stmxcsr %0" : "=m"(sse));
    asm volatile("fnstcw %0" : "=m"(x87));
    return (sse & 0xffffu) | static_cast<std::uint32_t>(x87) << 16;
}

/// How the calling thread computes, without what its computations have met.
inline FloatingPoint computing() noexcept {
    constexpr FloatingPoint met = 0x3f;
    return floating_point() & ~met;
}

inline void set_floating_point(FloatingPoint wanted) noexcept {
    const FloatingPoint present = floating_point();
    if (present == wanted) return;  // to write them is slow
    const std::uint32_t sse = wanted & 0xffffu;
    const auto x87 = static_cast<std::uint16_t>(wanted >> 16);
    asm volatile("ldmxcsr %0" : : "m"(sse));
    if ((present ^ wanted) >> 16 != 0) asm volatile("fldcw %0" : : "m"(x87));
}

}  // namespace hiroba::omp
