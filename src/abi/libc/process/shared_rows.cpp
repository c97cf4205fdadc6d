// SPDX-License-Identifier: BSD-3-Clause
// Role: see shared_rows.hpp.
#include "abi/libc/process/shared_rows.hpp"

#include <time.h>

#include <atomic>
#include <mutex>
#include <new>

#include "abi/libc/threads/threads.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

namespace hiroba::abi {
namespace {

constinit std::atomic<SharedRows*> rows{nullptr};
constinit Latch making;

std::uint64_t now_ns() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

/// No other thread of the program runs, on any node.
bool main_is_alone() noexcept {
    return !program_threads_run() && is_main_thread() && !world()->omp->is_in_region();
}

SharedRows* make_rows() noexcept {
    bool zeroed = false;
    void* const room = world()->heap->allocate(sizeof(SharedRows), 64, &zeroed);
    if (room == nullptr) {
        die(exit_environment, "no room for %lu bytes of shared state: set HIROBA_HEAP",
            sizeof(SharedRows));
    }
    auto* const made = new (room) SharedRows;
    // As libc's begin.
    initstate_r(1, made->first_state, sizeof made->first_state, &made->random);
    return made;
}

}  // namespace

SharedRows& shared_rows() noexcept {
    if (SharedRows* const known = rows.load(std::memory_order_acquire)) return *known;
    const std::scoped_lock guard{making};
    if (rows.load() == nullptr) rows.store(make_rows());
    return *rows.load();
}

void use_shared_rows(SharedRows& of_node_0) noexcept { rows.store(&of_node_0); }

RowsAlone::RowsAlone() noexcept : locked_(!main_is_alone()) {
    if (!locked_) return;
    const std::uint64_t start = now_ns();
    world()->omp->lock(omp::shared_rows_key);
    waited_ns_ = now_ns() - start;
}

RowsAlone::~RowsAlone() {
    if (locked_) world()->omp->unlock(omp::shared_rows_key);
}

}  // namespace hiroba::abi
