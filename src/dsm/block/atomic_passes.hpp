// SPDX-License-Identifier: BSD-3-Clause
// Role: the pages on which the program's threads may carry out atomics without a call: of blocks
// that are this node's alone, where an atomic is the processor's own. A trampoline says in its
// thread's window on which page it is, looks here whether that is open, and goes by.
// Invariant: who announces looks behind that whether the page is open; who closes it looks behind
// that who is there. One of the two sees the other: the fence between announcing and looking is
// made by who closes, by membarrier(2), on all threads of the process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/thread_context.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class AtomicPasses {
public:
    static constexpr std::size_t places = 4096;  ///< as OwnAtomics::places

    AtomicPasses() = default;
    AtomicPasses(const AtomicPasses&) = delete;
    AtomicPasses& operator=(const AtomicPasses&) = delete;
    ~AtomicPasses();

    /// Once, before any thread makes an atomic. Without it, or where the kernel refuses, no page
    /// is ever open.
    void start() noexcept;
    void start_for_tests() noexcept;  ///< where enter() is what goes by
    /// By the low bits of a page's number: the number, if it is open; else of another or 0.
    const std::atomic<std::uint64_t>* table() const noexcept { return table_; }
    bool are_usable() const noexcept { return table_ != nullptr; }

    void open(std::uintptr_t address) noexcept {
        const std::uint64_t page = address / page_bytes;
        std::atomic<std::uint64_t>& place = table_[page % places];
        // Looked at first: the line is to stay in the caches of all cores.
        if (place.load(std::memory_order_relaxed) != page)
            place.store(page, std::memory_order_release);
    }
    /// No thread comes in any more. Those that are there stay.
    void close(AddressRange range) noexcept {
        if (table_ == nullptr) return;
        for (std::uintptr_t at = range.address; at < range.end(); at += page_bytes) {
            std::atomic<std::uint64_t>& place = table_[at / page_bytes % places];
            std::uint64_t page = at / page_bytes;
            if (place.load(std::memory_order_relaxed) == page)
                place.compare_exchange_strong(page, 0, std::memory_order_seq_cst);
        }
    }
    /// Waits until nobody is there who has come before close().
    void await_none(AddressRange range) const noexcept;
    /// Waits until each atomic is over that is under way anywhere.
    void await_all() const noexcept;

    // As trampolines do it, in places of their own: for tests. Each thread fences itself.
    /// False: the page is closed, or the thread's place is another's, too, and taken.
    bool enter(const ThreadContext& thread, std::uintptr_t address) noexcept {
        if (table_ == nullptr) return false;
        const std::uint64_t page = address / page_bytes;
        std::uint64_t none = 0;
        // Sequentially consistent: pairs with await_none().
        if (!place_of(thread).compare_exchange_strong(none, page)) return false;
        if (table_[page % places].load() == page) return true;
        leave(thread);
        return false;
    }
    void leave(const ThreadContext& thread) noexcept {
        place_of(thread).store(0, std::memory_order_release);
    }

private:
    struct alignas(64) Place {
        std::atomic<std::uint64_t> page{0};
    };
    std::atomic<std::uint64_t>& place_of(const ThreadContext& thread) noexcept {
        return test_places_[thread.global_thread % test_places_.size()].page;
    }
    void make_table() noexcept;
    void fence_others() const noexcept;
    template <class Visit>
    void each_thread(Visit&& visit) const noexcept;

    std::atomic<std::uint64_t>* table_ = nullptr;
    bool fences_ = false;
    std::array<Place, 64> test_places_{};
};

}  // namespace hiroba::dsm
