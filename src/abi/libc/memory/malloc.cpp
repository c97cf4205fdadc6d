// SPDX-License-Identifier: BSD-3-Clause
// Role: malloc and its family as the program and all libraries see them.
// Invariant: argument errors and errno are glibc's. Each entry passes on its own return address:
// the code that asks decides where the memory comes from (abi/libc/memory/malloc_place.hpp).
#include <malloc.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/real.hpp"
#include "base/bytes.hpp"

#pragma GCC visibility push(default)

using namespace hiroba;

HIROBA_REAL_OF_LIBC(malloc_usable_size);
HIROBA_REAL_OF_LIBC(mallopt);

namespace {

void* refuse(int error) noexcept {
    errno = error;
    return nullptr;
}

/// memalign() with glibc's view of alignments that are no power of two: the next one.
void* aligned(std::size_t alignment, std::size_t bytes, const void* return_address) noexcept {
    if (alignment > (std::size_t{1} << 63)) return refuse(EINVAL);
    return abi::allocate_aligned(std::bit_ceil(alignment | 1), bytes, return_address);
}

void* resized(void* block, std::size_t bytes, const void* return_address) noexcept {
    if (!abi::is_spread()) return abi::libc_realloc(block, bytes);
    if (block == nullptr) return abi::allocate(bytes, return_address);
    const bool global = abi::is_program_memory(block);
    if (bytes == 0) {
        abi::release_block(block);
        return nullptr;
    }
    if (global)
        return abi::note_allocation(abi::resize_for_program(block, bytes), bytes, return_address);
    if (!abi::is_for_program(return_address)) return abi::libc_realloc(block, bytes);

    // The program goes on with a block that libc or an early library made: now it becomes its own.
    void* const moved = abi::allocate_for_program(bytes, 16, false);
    if (moved == nullptr) return nullptr;
    const std::size_t held = real_malloc_usable_size(block);
    std::memcpy(moved, block, held < bytes ? held : bytes);
    abi::libc_free(block);
    return moved;
}

/// glibc's answer to a value of mallopt().
bool is_accepted(int parameter, int value) noexcept {
    constexpr int fast_max = 160, threshold_max = 32 << 20;
    switch (parameter) {
        case M_MXFAST: return value >= 0 && value <= fast_max;
        case M_MMAP_THRESHOLD: return value >= 0 && value <= threshold_max;
        case M_ARENA_TEST:
        case M_ARENA_MAX: return value > 0;
        default: return true;
    }
}

}  // namespace

extern "C" {

/// What tunes libc's heap means nothing to the program's, which is not there. libc's own must stay
/// as it is: further arenas would lie at addresses that are equal on all nodes.
int mallopt(int parameter, int value) noexcept {
    if (!abi::is_spread() || !abi::is_for_program(__builtin_return_address(0)))
        return real_mallopt(parameter, value);
    if (!is_accepted(parameter, value)) return 0;
    if (parameter == M_PERTURB) {
        abi::set_perturb_byte(value & 0xff);
        if (abi::spans_nodes()) abi::process_state_changed("mallopt(M_PERTURB)");
    }
    return 1;
}

void* malloc(std::size_t bytes) noexcept {
    return abi::allocate(bytes, __builtin_return_address(0));
}

void free(void* block) noexcept { abi::release_block(block); }

void* calloc(std::size_t count, std::size_t bytes_each) noexcept {
    if (!abi::is_spread() || !abi::is_for_program(__builtin_return_address(0))) {
        return abi::libc_calloc(count, bytes_each);
    }
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, bytes_each, &bytes)) return refuse(ENOMEM);
    return abi::note_allocation(abi::allocate_for_program(bytes, 16, true), bytes,
                                __builtin_return_address(0));
}

void* realloc(void* block, std::size_t bytes) noexcept {
    return resized(block, bytes, __builtin_return_address(0));
}

void* reallocarray(void* block, std::size_t count, std::size_t bytes_each) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, bytes_each, &bytes)) return refuse(ENOMEM);
    return resized(block, bytes, __builtin_return_address(0));
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
    return aligned(alignment, bytes, __builtin_return_address(0));
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
    return aligned(alignment, bytes, __builtin_return_address(0));
}

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
    if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    const int errno_before = errno;
    void* const made = abi::allocate_aligned(alignment, bytes, __builtin_return_address(0));
    errno = errno_before;
    if (made == nullptr) return ENOMEM;
    *block = made;
    return 0;
}

void* valloc(std::size_t bytes) noexcept {
    return abi::allocate_aligned(page_bytes, bytes, __builtin_return_address(0));
}

void* pvalloc(std::size_t bytes) noexcept {
    if (bytes > PTRDIFF_MAX) return refuse(ENOMEM);
    return abi::allocate_aligned(page_bytes, round_up(bytes, page_bytes),
                                 __builtin_return_address(0));
}

std::size_t malloc_usable_size(void* block) noexcept {
    if (block == nullptr) return 0;
    if (abi::is_spread() && abi::is_program_memory(block)) return abi::program_block_bytes(block);
    return real_malloc_usable_size(block);
}

}  // extern "C"
