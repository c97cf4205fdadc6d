// SPDX-License-Identifier: BSD-3-Clause
// Role: the part of the relocatable space that is compiled into programs: what a node knows of a
// page, and how a thread announces that it uses it. Included by hiroba/gas.hpp; not an interface.
//
// A hit takes no lock and calls nothing. The thread writes down the address it is about to access
// (ThreadSlot), looks again whether the page is still there, accesses, and strikes the address out.
// A mover changes the entry, then has every thread of this process execute a barrier
// (membarrier(2)), then reads the slots: either the thread sees the changed entry, or the mover
// sees the slot. So the thread itself needs no barrier of the machine, only the compiler's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hiroba::gas {

/// What this node knows of one page. `reads` and `writes` are what hits look at; the rest belongs
/// to MetadataCache.
struct alignas(64) CachedPage {
    std::atomic<std::byte*> reads;       ///< its bytes, for loads; nullptr: not by a hit
    std::atomic<std::byte*> writes;      ///< its bytes, for stores and atomics; nullptr: as above
    std::atomic<std::uint64_t> word;     ///< CacheWord
    std::atomic<std::uint32_t> limit;    ///< bytes of the page that are allocated
    std::atomic<std::uint32_t> writers;  ///< posted writes, and view_unit for each view
    std::atomic<std::uint32_t> readers[2];  ///< posted reads, by the parity of the page's version
};

/// What a view adds to CachedPage::writers. A posted write adds 1, so the two can be told apart.
inline constexpr std::uint32_t view_unit = 1u << 16;

/// What one thread does this moment, and what it has done. Written by its thread alone.
struct alignas(64) ThreadSlot {
    std::atomic<std::byte*> reading;  ///< start of the page it loads from
    std::atomic<std::byte*> writing;
    std::atomic<std::uint64_t> hits;
    std::atomic<std::uint64_t> bytes_here, bytes_elsewhere;
    std::atomic<std::uint64_t> misses;
    std::atomic<bool> taken;

    // Relaxed: a statistic of one writer.
    void count(std::size_t bytes, bool here) noexcept {
        constexpr auto relaxed = std::memory_order_relaxed;
        hits.store(hits.load(relaxed) + 1, relaxed);
        std::atomic<std::uint64_t>& sum = here ? bytes_here : bytes_elsewhere;
        sum.store(sum.load(relaxed) + bytes, relaxed);
    }
    /// The access just counted had to fetch metadata first.
    void hit_was_miss() noexcept {
        constexpr auto relaxed = std::memory_order_relaxed;
        hits.store(hits.load(relaxed) - 1, relaxed);
        misses.store(misses.load(relaxed) + 1, relaxed);
    }
};

/// The calling thread's slot; nullptr until its first access, and where hits are not possible.
extern __attribute__((visibility("default"))) constinit thread_local ThreadSlot* this_slot;

/// Announces one access for as long as it lives. False: the page has moved meanwhile.
class Announced {
public:
    /// @param base  as just loaded from `now`, not nullptr
    Announced(std::atomic<std::byte*>& announcement, const std::atomic<std::byte*>& now,
              std::byte* base) noexcept
        : announcement_(announcement) {
        // Relaxed and a compiler's fence: the mover's membarrier() does the rest.
        announcement_.store(base, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        valid_ = now.load(std::memory_order_acquire) == base;  // pairs with MetadataCache's stores
    }
    Announced(const Announced&) = delete;
    // Release, pairs with MetadataCache::is_drained(): the access is over.
    ~Announced() { announcement_.store(nullptr, std::memory_order_release); }
    explicit operator bool() const noexcept { return valid_; }

private:
    std::atomic<std::byte*>& announcement_;
    bool valid_;
};

/// Copies from or to a page. Aligned 1, 2, 4 and 8 bytes are accessed whole.
template <class Word>
inline bool copy_word(std::byte* to, const std::byte* from, const std::byte* shared) noexcept {
    if (reinterpret_cast<std::uintptr_t>(shared) % sizeof(Word) != 0) return false;
    Word word;
    if (shared == from) {
        word = __atomic_load_n(reinterpret_cast<const Word*>(from), __ATOMIC_RELAXED);
        std::memcpy(to, &word, sizeof word);
    } else {
        std::memcpy(&word, from, sizeof word);
        __atomic_store_n(reinterpret_cast<Word*>(to), word, __ATOMIC_RELAXED);
    }
    return true;
}
__attribute__((no_sanitize("thread"))) inline void copy_page_bytes(
    std::byte* to, const std::byte* from, std::size_t bytes, const std::byte* shared) noexcept {
    switch (bytes) {
        case 8:
            if (copy_word<std::uint64_t>(to, from, shared)) return;
            break;
        case 4:
            if (copy_word<std::uint32_t>(to, from, shared)) return;
            break;
        case 2:
            if (copy_word<std::uint16_t>(to, from, shared)) return;
            break;
        case 1:
            if (copy_word<std::uint8_t>(to, from, shared)) return;
            break;
        default: break;
    }
    std::memcpy(to, from, bytes);
}

}  // namespace hiroba::gas
