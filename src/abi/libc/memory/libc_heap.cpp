// SPDX-License-Identifier: BSD-3-Clause
// Role: libc's own allocator. Invariant: it is found in libc itself. Allocators that are linked or
// preloaded (tcmalloc, jemalloc, mimalloc, TBB's) define these names, too, and what they made for
// libc would lie in memory that they map, which is the program's.
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;
void __libc_free(void*) noexcept;
}

HIROBA_REAL_OF_LIBC(__libc_malloc);
HIROBA_REAL_OF_LIBC(__libc_calloc);
HIROBA_REAL_OF_LIBC(__libc_realloc);
HIROBA_REAL_OF_LIBC(__libc_memalign);
HIROBA_REAL_OF_LIBC(__libc_free);

namespace hiroba::abi {

void* libc_malloc(std::size_t bytes) noexcept { return real___libc_malloc(bytes); }
void* libc_calloc(std::size_t count, std::size_t bytes_each) noexcept {
    return real___libc_calloc(count, bytes_each);
}
void* libc_realloc(void* block, std::size_t bytes) noexcept {
    return real___libc_realloc(block, bytes);
}
void* libc_memalign(std::size_t alignment, std::size_t bytes) noexcept {
    return real___libc_memalign(alignment, bytes);
}
void libc_free(void* block) noexcept { real___libc_free(block); }

}  // namespace hiroba::abi
