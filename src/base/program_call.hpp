// SPDX-License-Identifier: BSD-3-Clause
// Role: how this library calls functions of the program.
// Invariant: a function of libc that is interposed judges its caller by the return address, and a
// program's function that ends in a call of it (a jump, after optimization) shows its own caller:
// us. So every call into the program is made from a place that counts as the program's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

extern "C" {
[[gnu::visibility("hidden")]] void* hiroba_call_program(void* function, void* a, void* b, void* c);
/// With its frames below a multiple of `apart` bytes.
[[gnu::visibility("hidden")]] void* hiroba_call_program_apart(void* function, void* a,
                                                              std::uintptr_t apart);
/// With any number of arguments.
[[gnu::visibility("hidden")]] void* hiroba_call_program_with(void* function, void* const* words,
                                                             std::uintptr_t count);
[[gnu::visibility("hidden")]] extern const char hiroba_call_program_end;
}

namespace hiroba {

namespace detail {
template <class Argument>
void* as_pointer(Argument argument) noexcept {
    if constexpr (std::is_pointer_v<Argument>)
        return reinterpret_cast<void*>(argument);
    else
        return reinterpret_cast<void*>(static_cast<std::intptr_t>(argument));
}
}  // namespace detail

/// Calls a function of the program with up to three arguments: pointers, or integers of at most 64
/// bits. Returns the register a pointer is returned in.
template <class Function, class... Arguments>
void* call_program(Function* function, Arguments... arguments) {
    static_assert(sizeof...(Arguments) <= 3);
    void* const words[4] = {detail::as_pointer(arguments)..., nullptr};
    return hiroba_call_program(reinterpret_cast<void*>(function), words[0], words[1], words[2]);
}

/// Calls a function of the program on blocks of the stack that its callers have no frames on.
///
/// @param block_bytes  a power of two; at most so much of the stack stays unused
template <class Result>
void call_program_apart(Result (*function)(void*), void* argument, std::size_t block_bytes) {
    hiroba_call_program_apart(reinterpret_cast<void*>(function), argument, block_bytes);
}

/// As call_program(), with any number of pointers.
inline void* call_program_with(void* function, void* const* words, std::size_t count) {
    return hiroba_call_program_with(function, words, count);
}

/// Whether a return address is that of call_program(): the caller seen is a function of the
/// program.
inline bool is_program_call(const void* return_address) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(&hiroba_call_program);
    const auto end = reinterpret_cast<std::uintptr_t>(&hiroba_call_program_end);
    return reinterpret_cast<std::uintptr_t>(return_address) - begin < end - begin;
}

}  // namespace hiroba
