// SPDX-License-Identifier: BSD-3-Clause
// Role: omp_alloc and its kin, and GOMP_alloc for the allocate clause.
// Invariant: all memory spaces are the job's memory. A trait that cannot be kept (a pool size,
// pinning) makes omp_init_allocator return omp_null_allocator, as the specification allows.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "abi/gomp/runtime.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

using hiroba::abi::allocate_by_allocator;
using hiroba::abi::free_for_program;
using hiroba::abi::runtime;

namespace {

using Handle = std::uintptr_t;  ///< omp_allocator_handle_t
constexpr Handle predefined_last = 8;

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

/// What a handle above the predefined ones points to, in memory of the program.
struct Allocator {
    std::size_t alignment = 1;
    std::uintptr_t fallback = default_memory;
    Handle next = 0;  ///< asked where this one has no room (allocator_fb)
};

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
        const auto* const made =
            handle > predefined_last ? reinterpret_cast<const Allocator*>(handle) : nullptr;
        if (made != nullptr) align = std::max(align, made->alignment);
        void* const block = allocate_by_allocator(bytes, align, zero);
        if (block != nullptr || made == nullptr) return block;
        // All memory spaces are one: the default memory has no more room than this.
        if (made->fallback == abort_program) abort_for_lack_of(bytes);
        if (made->fallback != other_allocator) return nullptr;
        handle = made->next;
    }
}

bool multiply(std::size_t a, std::size_t b, std::size_t* product) noexcept {
    return !__builtin_mul_overflow(a, b, product);
}

}  // namespace

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
    if (block != nullptr) free_for_program(block);
}
void* omp_realloc(void* block, std::size_t bytes, Handle handle, Handle old_handle) {
    if (bytes == 0) {
        omp_free(block, old_handle);
        return nullptr;
    }
    void* const moved = omp_alloc(bytes, handle);
    if (moved == nullptr || block == nullptr) return moved;
    std::memcpy(moved, block, std::min(bytes, hiroba::abi::usable_bytes(block)));
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
                if (value != value_default) return 0;
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
    if (handle > predefined_last) free_for_program(reinterpret_cast<void*>(handle));
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
