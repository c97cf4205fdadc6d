// SPDX-License-Identifier: BSD-3-Clause
// Role: what malloc prints of itself. (How it is tuned: malloc.cpp.)
// Invariant: an allocator that is linked or preloaded is not asked: it serves nothing.
#include <malloc.h>

#include "abi/libc/real.hpp"

HIROBA_REAL_OF_LIBC(malloc_trim);
HIROBA_REAL_OF_LIBC(malloc_stats);
HIROBA_REAL_OF_LIBC(malloc_info);

#pragma GCC visibility push(default)
extern "C" {

int malloc_trim(std::size_t pad) noexcept { return real_malloc_trim(pad); }
void malloc_stats() noexcept { real_malloc_stats(); }
int malloc_info(int options, FILE* to) noexcept { return real_malloc_info(options, to); }

}  // extern "C"
