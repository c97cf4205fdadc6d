// SPDX-License-Identifier: BSD-3-Clause
// Role: block-sized buffers for code that may run on a small signal stack and may not allocate.
// Invariant: a buffer is used by one thread at a time; 64 of them, more threads wait their turn
// (a holder never waits for another buffer).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"

namespace hiroba::dsm {

class ScratchPool {
public:
    explicit ScratchPool(std::size_t block_bytes)
        : block_bytes_(block_bytes), memory_(buffers * block_bytes) {}

    std::byte* take() noexcept {
        Backoff backoff;
        for (;; backoff.pause()) {
            std::uint64_t free = free_.load(std::memory_order_relaxed);
            while (free != 0) {
                const int at = std::countr_zero(free);
                // Pairs with the release in give(): its former user is done with the buffer.
                if (free_.compare_exchange_weak(free, free & ~(std::uint64_t{1} << at),
                                                std::memory_order_acquire)) {
                    return memory_.data() + static_cast<std::size_t>(at) * block_bytes_;
                }
            }
        }
    }
    void give(std::byte* buffer) noexcept {
        const auto at = static_cast<std::size_t>(buffer - memory_.data()) / block_bytes_;
        free_.fetch_or(std::uint64_t{1} << at, std::memory_order_release);  // pairs with take()
    }

    /// Calls visit(buffer) for each that is in use. While nobody takes or gives any.
    template <class Visit>
    void each_used(Visit&& visit) noexcept {
        std::uint64_t used = ~free_.load(std::memory_order_relaxed);
        for (; used != 0; used &= used - 1) {
            visit(memory_.data() + static_cast<std::size_t>(std::countr_zero(used)) * block_bytes_);
        }
    }

private:
    static constexpr std::size_t buffers = 64;
    std::size_t block_bytes_;
    std::atomic<std::uint64_t> free_{~std::uint64_t{0}};
    SparseArray<std::byte> memory_;
};

/// A buffer for the length of a scope.
class Scratch {
public:
    explicit Scratch(ScratchPool& pool) noexcept : pool_(pool), buffer_(pool.take()) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { pool_.give(buffer_); }
    std::byte* get() const noexcept { return buffer_; }

private:
    ScratchPool& pool_;
    std::byte* buffer_;
};

}  // namespace hiroba::dsm
