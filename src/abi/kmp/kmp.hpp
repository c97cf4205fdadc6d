// SPDX-License-Identifier: BSD-3-Clause
// Role: what clang's code shares with its OpenMP runtime: layouts, flags and numbers.
// Invariant: those of clang 10 to 19 for x86-64. The number of a thread that code passes to entry
// points (global_tid) is what __kmpc_global_thread_num() gave it; nothing here relies on it, every
// entry point asks the runtime which thread is calling.
// Source: what clang emits (-S -emit-llvm), and the reference of LLVM's runtime.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/gomp/runtime.hpp"

namespace hiroba::abi::kmp {

using Int = std::int32_t;
using Unsigned = std::uint32_t;
using Long = std::int64_t;
using UnsignedLong = std::uint64_t;

/// Where a construct stands in the source, and what kind it is; passed everywhere.
struct Location {
    Int reserved_1, flags, reserved_2, reserved_3;
    const char* source;
};

namespace location_flag {
inline constexpr Int atomic_reduce = 0x10, barrier_implicit = 0x40, sections = 0x400;
}

/// The function that the body of a region has become: it takes the addresses of two thread numbers,
/// then any number of pointers.
using Microtask = void (*)(Int*, Int*, ...);

inline void* as_pointer(Microtask function) noexcept { return reinterpret_cast<void*>(function); }

/// A name of mutual exclusion: the address of zeroed bytes of the program.
inline std::uint64_t key_of(const void* name) noexcept {
    return reinterpret_cast<std::uintptr_t>(name);
}

/// Schedules, without their modifiers and once ordered ones are told apart.
enum class Sched : Int {
    static_chunked = 33,
    static_blocks = 34,
    dynamic = 35,
    guided = 36,
    runtime = 37,
    automatic = 38,
    trapezoidal = 39,
    static_greedy = 40,
    static_balanced = 41,
    guided_iterative = 42,
    guided_analytical = 43,
    static_steal = 44,
    static_balanced_chunked = 45,
    guided_simd = 46,
    runtime_simd = 47,
    distribute_chunked = 91,
    distribute_blocks = 92,
};

struct Schedule {
    Sched kind = Sched::static_blocks;
    bool ordered = false;
};

/// The schedule in an entry point's number.
constexpr Schedule schedule_of(Int number) noexcept {
    constexpr Int modifiers = 3 << 29;  // monotonic, nonmonotonic
    constexpr Int no_merge = 128, ordered_first = 65, ordered_last = 72, ordered_by = 32;
    number &= ~modifiers;
    if (number >= ordered_first + no_merge - ordered_by) number -= no_merge;
    const bool ordered = number >= ordered_first && number <= ordered_last;
    return {static_cast<Sched>(ordered ? number - ordered_by : number), ordered};
}

/// 0 disabled, 1 default, 2 mandatory: what the program has set, or its environment.
int target_offload() noexcept;

}  // namespace hiroba::abi::kmp
