// SPDX-License-Identifier: BSD-3-Clause
// Role: how malloc is tuned, and what it prints of itself.
// Invariant: libc's own heap stays as this library has set it (one arena: malloc_place.cpp). An
// allocator that is linked or preloaded is not asked: it serves nothing.
#include <malloc.h>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

HIROBA_REAL_OF_LIBC(mallopt);
HIROBA_REAL_OF_LIBC(malloc_trim);
HIROBA_REAL_OF_LIBC(malloc_stats);
HIROBA_REAL_OF_LIBC(malloc_info);

#pragma GCC visibility push(default)
extern "C" {

int mallopt(int parameter, int value) noexcept {
    constexpr int accepted = 1;
    const bool own = hiroba::abi::is_own_code(__builtin_return_address(0));
    return !own && hiroba::abi::is_spread() ? accepted : real_mallopt(parameter, value);
}

int malloc_trim(std::size_t pad) noexcept { return real_malloc_trim(pad); }
void malloc_stats() noexcept { real_malloc_stats(); }
int malloc_info(int options, FILE* to) noexcept { return real_malloc_info(options, to); }

}  // extern "C"
