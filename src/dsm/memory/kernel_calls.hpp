// SPDX-License-Identifier: BSD-3-Clause
// Role: system calls without the C library: no errno, no interposed name, no call through a table
// of pointers that might lie in global memory. What the fault path and the engines use.
// Invariant: async-signal-safe; a result in [-4095, -1] is the negated error number.
#pragma once

#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hiroba::dsm {

namespace kernel {

template <class T>
long as_word(T value) noexcept {
    if constexpr (std::is_pointer_v<T>)
        return static_cast<long>(reinterpret_cast<std::uintptr_t>(value));
    else
        return static_cast<long>(value);
}

inline long call_six(long number, long a, long b, long c, long d, long e, long f) noexcept {
    long result;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}

}  // namespace kernel

/// System call `number` with up to six integer or pointer arguments.
template <class... Arguments>
long kernel_call(long number, Arguments... arguments) noexcept {
    static_assert(sizeof...(Arguments) <= 6);
    const long words[7] = {kernel::as_word(arguments)..., 0};
    return kernel::call_six(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/// Whether an address-returning call (mmap) failed.
inline bool kernel_failed(long result) noexcept { return result < 0 && result >= -4095; }

}  // namespace hiroba::dsm
