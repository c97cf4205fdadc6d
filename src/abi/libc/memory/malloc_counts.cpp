// SPDX-License-Identifier: BSD-3-Clause
// Role: what malloc tells of itself, and how it is tuned.
// Invariant: the program's memory is that of all nodes. libc's own heap is the node's, and stays as
// this library has set it (one arena: malloc_place.cpp).
#include <malloc.h>

#include <algorithm>
#include <climits>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs use the older form, too
HIROBA_REAL_OF_LIBC(mallinfo);
HIROBA_REAL_OF_LIBC(mallinfo2);
HIROBA_REAL_OF_LIBC(mallopt);
HIROBA_REAL_OF_LIBC(malloc_trim);
HIROBA_REAL_OF_LIBC(malloc_stats);
HIROBA_REAL_OF_LIBC(malloc_info);

namespace {

std::size_t used_by_program() noexcept {
    return hiroba::abi::spans_nodes() ? hiroba::abi::world()->heap->bytes_used_everywhere() : 0;
}

/// What the older form holds of a count that is too large for it.
int as_int(std::size_t count) noexcept {
    return static_cast<int>(std::min(count, std::size_t{INT_MAX}));
}

bool is_spread_call(const void* return_address) noexcept {
    return hiroba::abi::is_spread() && !hiroba::abi::is_own_code(return_address);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

struct mallinfo2 mallinfo2() noexcept {
    struct mallinfo2 info = real_mallinfo2();
    const std::size_t used = used_by_program();
    info.arena += used;
    info.uordblks += used;
    return info;
}

struct mallinfo mallinfo() noexcept {
    struct mallinfo info = real_mallinfo();
    const std::size_t used = used_by_program();
    if (used == 0) return info;
    info.arena = as_int(static_cast<unsigned>(info.arena) + used);
    info.uordblks = as_int(static_cast<unsigned>(info.uordblks) + used);
    return info;
}

int mallopt(int parameter, int value) noexcept {
    constexpr int accepted = 1;
    if (is_spread_call(__builtin_return_address(0))) return accepted;
    return real_mallopt(parameter, value);
}

// An allocator that is linked or preloaded would answer for memory that it was never asked for.
int malloc_trim(std::size_t pad) noexcept { return real_malloc_trim(pad); }
void malloc_stats() noexcept { real_malloc_stats(); }
int malloc_info(int options, FILE* to) noexcept { return real_malloc_info(options, to); }

}  // extern "C"
