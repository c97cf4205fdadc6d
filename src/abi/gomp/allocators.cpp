// SPDX-License-Identifier: BSD-3-Clause
// Role: omp_alloc and its kin, and GOMP_alloc for the allocate clause.
// Invariant: all memory spaces are the job's memory. A trait that cannot be kept (pinning) makes
// omp_init_allocator return omp_null_allocator, as the specification allows. Each block has a
// header in front, so that it can be freed without naming its allocator. What is taken of a pool is
// counted under a lock that is named by the allocator: any thread of any node may take and give.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "abi/gomp/marked_blocks.hpp"
#include "abi/gomp/runtime.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

using hiroba::abi::allocate_by_allocator;
using hiroba::abi::BlockMark;
using hiroba::abi::free_for_program;
using hiroba::abi::has_mark;
using hiroba::abi::mark_block;
using hiroba::abi::runtime;
using hiroba::abi::unmark_block;

namespace {

using Handle = std::uintptr_t;  ///< omp_allocator_handle_t
/// Handles that a compiler's omp.h predefines (the standard's, gcc's, LLVM's own) lie below this
/// number.
constexpr Handle predefined_end = 4096;
/// ompx_gnu_pinned_mem_alloc, whose fallback is null_fb.
constexpr Handle pinned_by_gcc = 200;

/// omp_alloctrait_t
struct Trait {
    int key;
    std::uintptr_t value;
};
enum TraitKey : int {
    sync_hint = 1,
    alignment = 2,
    access_rights = 3,
    pool_size = 4,
    fallback = 5,
    fallback_data = 6,
    pinned = 7,
    partition = 8
};
constexpr std::uintptr_t value_default = ~std::uintptr_t{0};
/// omp_atv_default_mem_fb and those behind it, as gcc's omp.h has numbered them since 11.
enum Fallback : std::uintptr_t {
    default_memory = 11,
    null_pointer = 12,
    abort_program = 13,
    other_allocator = 14
};

/// The record that a handle above the predefined ones points to, in memory of the program.
struct Allocator {
    std::uint32_t lock = 0;  ///< its address names the lock, and is it on one node
    std::size_t pool_bytes = SIZE_MAX, taken_bytes = 0;
    std::size_t alignment = 1;
    std::uintptr_t fallback = default_memory;
    Handle next = 0;  ///< asked where this one has no room (allocator_fb)
};

/// In front of each block.
struct Header {
    void* base;
    std::size_t bytes;
    Handle allocator;     ///< that had room for it
    std::uintptr_t mark;  ///< by mark_block()
};
static_assert(sizeof(Header) == 32);

Header& header_of(void* block) noexcept { return static_cast<Header*>(block)[-1]; }

Allocator* allocator_at(Handle handle) noexcept {
    return handle >= predefined_end ? reinterpret_cast<Allocator*>(handle) : nullptr;
}

/// What a block of a pool takes. Other runtimes count their headers, too: of a pool that is as
/// large as its blocks together, not all fit.
std::size_t with_header(std::size_t bytes) noexcept {
    const bool fits = bytes <= SIZE_MAX - sizeof(Header);
    return fits ? bytes + sizeof(Header) : SIZE_MAX;
}

/// Counts blocks of `more` bytes in and of `less` bytes out; 0: none. False: they do not fit,
/// nothing was done.
bool count(Allocator* allocator, std::size_t more, std::size_t less) noexcept {
    if (allocator == nullptr || allocator->pool_bytes == SIZE_MAX) return true;
    more = more != 0 ? with_header(more) : 0;
    less = less != 0 ? with_header(less) : 0;
    const auto key = reinterpret_cast<std::uintptr_t>(&allocator->lock);
    runtime().lock(key);
    const std::size_t left = allocator->pool_bytes - (allocator->taken_bytes - less);
    const bool fits = more <= left;
    if (fits) allocator->taken_bytes += more - less;
    runtime().unlock(key);
    return fits;
}

/// Not counted. `align`: a power of two.
void* make_block(Handle handle, std::size_t align, std::size_t bytes, bool zero) noexcept {
    align = std::max(align, alignof(std::max_align_t));
    const std::size_t front = (sizeof(Header) + align - 1) & ~(align - 1);
    std::size_t all = 0;
    if (__builtin_add_overflow(front, bytes, &all)) return nullptr;
    auto* const base = static_cast<std::byte*>(allocate_by_allocator(all, align, zero));
    if (base == nullptr) return nullptr;
    header_of(base + front) = {base, bytes, handle, 0};
    return base + front;
}

Handle chosen(Handle handle) noexcept {
    return handle != 0 ? handle : runtime().icvs().default_allocator;
}

[[noreturn]] void abort_for_lack_of(std::size_t bytes) noexcept {
    hiroba::die(1,
                "omp_alloc of %lu bytes: out of memory, and its allocator's fallback is abort_fb",
                static_cast<unsigned long>(bytes));
}

void* allocate(Handle handle, std::size_t align, std::size_t bytes, bool zero) noexcept {
    if (bytes == 0) return nullptr;
    // An allocator's next one was made before it, so the chain ends.
    for (handle = chosen(handle);;) {
        if (handle == pinned_by_gcc) return nullptr;
        Allocator* const made = allocator_at(handle);
        if (made != nullptr) align = std::max(align, made->alignment);
        const bool fits = count(made, bytes, 0);
        void* const block = fits ? make_block(handle, align, bytes, zero) : nullptr;
        if (block != nullptr || made == nullptr) return block;
        if (fits) count(made, 0, bytes);
        if (made->fallback == abort_program) abort_for_lack_of(bytes);
        if (made->fallback == null_pointer) return nullptr;
        // The default memory has room where merely the pool has none.
        handle = made->fallback == other_allocator ? made->next : 1;
        if (handle == 0) handle = 1;
    }
}

bool multiply(std::size_t a, std::size_t b, std::size_t* product) noexcept {
    return !__builtin_mul_overflow(a, b, product);
}

std::uintptr_t mark_of(const void* block, hiroba::abi::BlockMark mark) noexcept {
    return (reinterpret_cast<std::uintptr_t>(block) | 1) * static_cast<std::uint64_t>(mark);
}

/// The word in front of `block` where its header has the mark; 0 where nothing is mapped.
std::uintptr_t mark_in_front(const void* block) noexcept {
    const auto* const place = static_cast<const std::byte*>(block) - sizeof(std::uintptr_t);
    const hiroba::abi::World* const here = hiroba::abi::world();
    std::uintptr_t mark = 0;
    if (here != nullptr && here->heap != nullptr) {
        if (here->heap->owns(place)) std::memcpy(&mark, place, sizeof mark);
        return mark;
    }
    const iovec to{&mark, sizeof mark}, from{const_cast<std::byte*>(place), sizeof mark};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(sizeof mark))
        mark = 0;
    return mark;
}

}  // namespace

void hiroba::abi::mark_block(void* block, BlockMark mark) noexcept {
    if (block != nullptr) header_of(block).mark = mark_of(block, mark);
}
void hiroba::abi::unmark_block(void* block) noexcept { header_of(block).mark = 0; }
bool hiroba::abi::has_mark(const void* address, BlockMark mark) noexcept {
    return mark_in_front(address) == mark_of(address, mark);
}

extern "C" {

void* omp_alloc(std::size_t bytes, Handle handle) { return allocate(handle, 1, bytes, false); }
void* omp_aligned_alloc(std::size_t align, std::size_t bytes, Handle handle) {
    return allocate(handle, align, bytes, false);
}
void* omp_calloc(std::size_t count, std::size_t bytes, Handle handle) {
    return multiply(count, bytes, &bytes) ? allocate(handle, 1, bytes, true) : nullptr;
}
void* omp_aligned_calloc(std::size_t align, std::size_t count, std::size_t bytes, Handle handle) {
    return multiply(count, bytes, &bytes) ? allocate(handle, align, bytes, true) : nullptr;
}
void omp_free(void* block, Handle) {
    if (block == nullptr) return;
    const Header header = header_of(block);
    unmark_block(block);
    count(allocator_at(header.allocator), 0, header.bytes);
    free_for_program(header.base);
}
void* omp_realloc(void* block, std::size_t bytes, Handle handle, Handle old_handle) {
    if (block == nullptr) return omp_alloc(bytes, handle);
    if (bytes == 0) {
        omp_free(block, old_handle);
        return nullptr;
    }
    const Header old = header_of(block);
    if (handle == 0) handle = old.allocator;
    Allocator* const made = allocator_at(handle);
    void* moved = nullptr;
    // Within a pool only the difference counts.
    const bool stays = handle == old.allocator && count(made, bytes, old.bytes);
    if (stays) moved = make_block(handle, made != nullptr ? made->alignment : 1, bytes, false);
    if (stays && moved == nullptr) count(made, old.bytes, bytes);
    if (!stays) moved = omp_alloc(bytes, handle);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, block, std::min(bytes, old.bytes));
    unmark_block(block);
    if (stays)
        free_for_program(old.base);
    else
        omp_free(block, old_handle);
    return moved;
}
void* GOMP_alloc(std::size_t align, std::size_t bytes, Handle handle) {
    void* const block = allocate(handle, align, std::max(bytes, std::size_t{1}), false);
    if (block == nullptr)
        hiroba::die(1, "out of memory allocating %lu bytes", static_cast<unsigned long>(bytes));
    return block;
}
void GOMP_free(void* block, Handle handle) { omp_free(block, handle); }
// Marks an allocatable variable of Fortran that GOMP_alloc made. GOMP_is_alloc tells code that
// frees or moves it, and takes the mark away.
void GOMP_add_alloc(void* block) { mark_block(block, BlockMark::allocatable); }
bool GOMP_is_alloc(void* block) {
    if (block == nullptr || !has_mark(block, BlockMark::allocatable)) return false;
    unmark_block(block);
    return true;
}

Handle omp_init_allocator(Handle, int trait_count, const Trait* traits) {
    Allocator wanted;
    for (const Trait* trait = traits; trait != traits + trait_count; ++trait) {
        const std::uintptr_t value = trait->value;
        switch (trait->key) {
            case alignment:
                if (value == value_default) break;
                if (value == 0 || (value & (value - 1)) != 0) return 0;
                wanted.alignment = value;
                break;
            case fallback:
                if (value == value_default) break;
                if (value < default_memory || value > other_allocator) return 0;
                wanted.fallback = value;
                break;
            case pool_size:
                if (value != value_default) wanted.pool_bytes = value;
                break;
            case pinned:
                if (value == 1) return 0;
                break;
            case sync_hint:
                if (value != value_default && (value < 3 || value > 6)) return 0;
                break;
            case access_rights:
                if (value != value_default && (value < 7 || value > 10)) return 0;
                break;
            case fallback_data: wanted.next = value; break;
            case partition:
                if (value != value_default && (value < 15 || value > 18)) return 0;
                break;
            default: return 0;
        }
    }
    void* const place = allocate_by_allocator(sizeof(Allocator), alignof(Allocator), false);
    return place == nullptr ? 0 : reinterpret_cast<Handle>(new (place) Allocator(wanted));
}
void omp_destroy_allocator(Handle handle) {
    if (handle >= predefined_end) free_for_program(reinterpret_cast<void*>(handle));
}
Handle omp_get_default_allocator() { return runtime().icvs().default_allocator; }
void omp_set_default_allocator(Handle handle) {
    runtime().icvs().default_allocator = handle != 0 ? handle : 1;
}

Handle omp_init_allocator_(const Handle* space, const std::int32_t* count, const Trait* traits) {
    return omp_init_allocator(*space, *count, traits);
}
Handle omp_init_allocator_8_(const Handle* space, const std::int64_t* count, const Trait* traits) {
    return omp_init_allocator(*space, static_cast<int>(*count), traits);
}
void omp_destroy_allocator_(const Handle* handle) { omp_destroy_allocator(*handle); }
Handle omp_get_default_allocator_() { return omp_get_default_allocator(); }
void omp_set_default_allocator_(const Handle* handle) { omp_set_default_allocator(*handle); }

}  // extern "C"
