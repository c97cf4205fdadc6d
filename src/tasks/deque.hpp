// SPDX-License-Identifier: BSD-3-Clause
// Role: a worker's continuations: it pushes and pops at the bottom, other workers of the node take
// from the top. Source: Chase & Lev, Dynamic circular work-stealing deque; of fixed size here.
//
// `top_` only grows, and an element between top and bottom is overwritten by nobody: who raises
// top_ from t has element t for himself. The owner raises it only for the last element. It stores
// bottom_ before it loads top_, a thief loads them the other way round, all in one total order: so
// of the owner, who takes an element without a compare-swap, and a thief at least one sees the
// other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hiroba::tasks {

template <class T, std::size_t capacity>
class Deque {
    static_assert((capacity & (capacity - 1)) == 0);

public:
    /// The owner. @return false: it is full, nothing was done
    bool push(T* element) noexcept {
        const std::uint64_t bottom = bottom_.load(std::memory_order_relaxed);  // its own
        // Acquire, pairs with the raising of top_: who took the element has read its place.
        if (bottom - top_.load(std::memory_order_acquire) >= capacity) [[unlikely]]
            return false;
        elements_[bottom % capacity].store(element, std::memory_order_relaxed);
        bottom_.store(bottom + 1, std::memory_order_release);  // pairs with take()
        return true;
    }
    /// The owner: the newest one, or nullptr.
    T* pop() noexcept {
        const std::uint64_t bottom = bottom_.load(std::memory_order_relaxed);  // its own
        // Relaxed: top_ only grows, so empty stays empty.
        if (bottom == top_.load(std::memory_order_relaxed)) return nullptr;
        bottom_.store(bottom - 1, std::memory_order_seq_cst);
        std::uint64_t top = top_.load(std::memory_order_seq_cst);
        T* found = nullptr;
        if (top < bottom)
            found = elements_[(bottom - 1) % capacity].load(std::memory_order_relaxed);
        if (top + 1 < bottom) return found;
        if (top < bottom && !top_.compare_exchange_strong(top, top + 1)) found = nullptr;
        bottom_.store(bottom, std::memory_order_release);  // pairs with take()
        return found;
    }
    /// Any thread: the oldest one; nullptr: there is none, or another was faster.
    T* take() noexcept {
        std::uint64_t top = top_.load(std::memory_order_seq_cst);
        if (top >= bottom_.load(std::memory_order_seq_cst)) return nullptr;
        T* const found = elements_[top % capacity].load(std::memory_order_relaxed);
        return top_.compare_exchange_strong(top, top + 1) ? found : nullptr;
    }
    /// Whether there may be something, at some moment of the call.
    bool is_empty() const noexcept {
        return top_.load(std::memory_order_relaxed) >= bottom_.load(std::memory_order_relaxed);
    }

private:
    alignas(64) std::atomic<std::uint64_t> top_{0};
    alignas(64) std::atomic<std::uint64_t> bottom_{0};
    alignas(64) std::array<std::atomic<T*>, capacity> elements_{};
};

}  // namespace hiroba::tasks
