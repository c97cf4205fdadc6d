// SPDX-License-Identifier: BSD-3-Clause
// Role: finds the runtime, says no, and hands out memory of the program.
// Invariant: memory for the program comes from the shared heap where there is one.
#include "abi/gomp/runtime.hpp"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "net/bootstrap/job.hpp"

namespace hiroba::abi {

namespace {

constexpr std::size_t alignment_min = alignof(std::max_align_t);

/// Threads that a team of the job has, by default.
std::uint32_t threads_of_job() noexcept {
    const auto job = net::read_job_info();
    return job ? job->nodes * job->threads_per_node : 0;
}

/// What a library's constructor finds: each process is by itself yet, and what node 0's leaves in
/// memory is what the job begins with.
// Of all threads, but not destroyed with statics: one of them may outlive those.
std::atomic<omp::Runtime*> early{nullptr};
Latch early_latch;

omp::Runtime& early_runtime() noexcept {
    omp::Runtime* made = early.load(std::memory_order_acquire);  // pairs with the store below
    if (made != nullptr) return *made;
    const std::scoped_lock guard{early_latch};
    if (made = early.load(std::memory_order_relaxed); made != nullptr) return *made;
    auto wanted = omp::Runtime::create({.threads_per_node = threads_of_job()});
    if (!wanted) die(exit_environment, "OpenMP before main: %s", wanted.error().text.c_str());
    made = wanted->release();
    // A thread that a constructor has made may still be in a region when main begins.
    if (gettid() == getpid()) made->become_initial_thread();
    early.store(made, std::memory_order_release);
    return *made;
}

}  // namespace

omp::Runtime& runtime() noexcept {
    World* const here = world();
    if (here != nullptr && here->omp != nullptr) [[likely]]
        return *here->omp;
    return early_runtime();
}

void end_early_runtime() noexcept { delete early.exchange(nullptr); }

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
