// SPDX-License-Identifier: BSD-3-Clause
// Role: stands in for the shared memory in the rewriter's tests, and keeps what it was called for.
// Invariant: included by one test, behind rewriter_test_run.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/latch.hpp"
#include "omp/atomic/rewriter.hpp"
#include "omp/atomic/rewriter_test_passes.hpp"
#include "omp/atomic/rewriter_test_run.hpp"

namespace hiroba::omp {
namespace {

/// Stands in for the shared memory: one latch is every block's critical section.
struct Hooks {
    std::atomic<std::uint64_t> entered{0}, left{0}, flushed{0};
    std::atomic<bool> take{true}, leaves{false};
    LastAtomic left_to_join;
    std::vector<std::uintptr_t> waits;
    std::byte* arena = nullptr;  ///< whose words end waits
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    Latch latch;

    void clear() {
        entered = left = flushed = 0;
        take = true;
        address = bytes = 0;
        left_to_join = {};
        waits.clear();
    }
};
Hooks hooks_seen;

constexpr std::size_t waited_words = 8;

/// What is waited for: below 0 it is there.
void put_waited(std::byte* arena, std::uint64_t sign) {
    std::byte* const words = arena + 0x2300;
    for (std::size_t i = 0; i < waited_words; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, words + 8 * i, 8);
        word = word << 1 >> 1 | sign;
        std::memcpy(words + 8 * i, &word, 8);
        form_word[8 + i] = form_word[8 + i] << 1 >> 1 | sign;
    }
}
constexpr std::uint64_t is_there = std::uint64_t{1} << 63;

/// What is waited for comes at the third time.
void waits(void*, void* address) noexcept {
    hooks_seen.waits.push_back(reinterpret_cast<std::uintptr_t>(address));
    if (hooks_seen.waits.size() >= 3) put_waited(hooks_seen.arena, is_there);
    clobber();
}

bool enter(void*, void* address, std::size_t bytes) noexcept {
    clobber();
    if (!hooks_seen.take) return false;
    hooks_seen.latch.lock();
    hooks_seen.address = reinterpret_cast<std::uintptr_t>(address);
    hooks_seen.bytes = bytes;
    ++hooks_seen.entered;
    return true;
}

void leave(void*, void* address, std::size_t bytes) noexcept {
    clobber();
    if (hooks_seen.address == reinterpret_cast<std::uintptr_t>(address) &&
        hooks_seen.bytes == bytes) {
        ++hooks_seen.left;
    }
    hooks_seen.latch.unlock();
}

void flush(void*) noexcept {
    clobber();
    ++hooks_seen.flushed;
}

bool leaves_to_join(const LastAtomic& atomic) noexcept {
    clobber();
    if (!hooks_seen.leaves) return false;  // several threads of a test ask
    hooks_seen.left_to_join = atomic;
    return true;
}

}  // namespace
}  // namespace hiroba::omp
