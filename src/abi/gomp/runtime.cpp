// SPDX-License-Identifier: BSD-3-Clause
// Role: finds the runtime, says no, and hands out memory of the program.
// Invariant: memory for the program comes from the shared heap where there is one.
#include "abi/gomp/runtime.hpp"

#include <malloc.h>

#include <cstdlib>
#include <cstring>

#include "abi/world.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi {

namespace {

constexpr std::size_t alignment_min = alignof(std::max_align_t);

omp::Runtime& early_runtime() noexcept {
    // Never destroyed: a thread may outlive static destruction.
    static omp::Runtime* const early = [] {
        auto made = omp::Runtime::create({});
        if (!made) die(exit_environment, "OpenMP before main: %s", made.error().text.c_str());
        return made->release();
    }();
    return *early;
}

}  // namespace

omp::Runtime& runtime() noexcept {
    World* const here = world();
    if (here != nullptr && here->omp != nullptr) [[likely]]
        return *here->omp;
    return early_runtime();
}

void refuse(const char* entry_point, const char* construct) noexcept {
    die(exit_environment, "%s: %s not supported yet; the program cannot go on without", entry_point,
        construct);
}

void* allocate_by_allocator(std::size_t bytes, std::size_t alignment, bool zero) noexcept {
    if (alignment < alignment_min) alignment = alignment_min;
    World* const here = world();
    bool zeroed = false;
    void* block = nullptr;
    if (here != nullptr && here->heap != nullptr)
        block = here->heap->allocate(bytes, alignment, &zeroed);
    else if (posix_memalign(&block, alignment, bytes) != 0)
        block = nullptr;
    if (zero && !zeroed && block != nullptr) std::memset(block, 0, bytes);
    return block;
}

void free_for_program(void* block) noexcept {
    World* const here = world();
    if (here != nullptr && here->heap != nullptr && here->heap->owns(block))
        here->heap->deallocate(block);
    else
        std::free(block);
}

std::size_t usable_bytes(void* block) noexcept {
    World* const here = world();
    if (here != nullptr && here->heap != nullptr && here->heap->owns(block))
        return here->heap->usable_bytes(block);
    return malloc_usable_size(block);
}

}  // namespace hiroba::abi
