// SPDX-License-Identifier: BSD-3-Clause
// Role: the requests that a provider has and has not completed. The index of a slot is the tag that
// goes through the provider, so a completion finds its callback without a search.
// Invariant: no lock and no shared word: each thread starts looking where its last slots lay, and
// claims a slot by the slot's own flag. A free list, the paper's, is what all threads would meet
// at (Endo & Taura, section 3.3 and figure 6).
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/bytes.hpp"
#include "net/offload/command.hpp"

namespace hiroba::net::offload {

/// One request in flight. Written by whoever claimed it, then by the completer.
struct alignas(cache_line_bytes) Slot {
    std::atomic<bool> busy{false};
    Command command;          ///< what puts and gets have of it shares a line with `busy`
    std::uint64_t old = 0;    ///< what a provider's atomic found
    std::uint64_t guess = 0;  ///< of a narrow atomic, see narrow_atomic.hpp
};

class SlotTable {
public:
    static constexpr std::uint32_t slots_max = 1024;
    static constexpr std::uint32_t none = ~0u;

    /// The shards' starts lie evenly in the table.
    SlotTable() noexcept {
        for (std::uint32_t i = 0; i < shards; ++i) starts_[i].next = i * (slots_max / shards);
    }

    /// A free slot's index, or `none` when those looked at were busy. Any thread.
    std::uint32_t claim() noexcept {
        std::atomic<std::uint32_t>& next = starts_[shard()].next;
        const std::uint32_t start = next.load(std::memory_order_relaxed);  // a hint
        for (std::uint32_t i = 0; i < probes_max; ++i) {
            const std::uint32_t index = (start + i) % slots_max;
            std::atomic<bool>& busy = slots_[index].busy;
            // Acquire, pairs with release(): the slot's last user is done with it.
            if (busy.load(std::memory_order_relaxed) ||
                busy.exchange(true, std::memory_order_acquire)) {
                continue;
            }
            next.store(index + 1, std::memory_order_relaxed);
            return index;
        }
        // Old requests stand here: look elsewhere the next time.
        next.store(start + probes_max, std::memory_order_relaxed);
        return none;
    }
    void release(std::uint32_t index) noexcept {
        slots_[index].busy.store(false, std::memory_order_release);  // pairs with claim()
    }
    /// Looks at every slot. Any thread.
    bool any_busy() const noexcept {
        for (const Slot& slot : slots_) {
            if (slot.busy.load(std::memory_order_acquire)) return true;  // release()
        }
        return false;
    }
    Slot& operator[](std::uint32_t index) noexcept { return slots_[index]; }

private:
    static constexpr std::uint32_t probes_max = 64;
    static constexpr std::uint32_t shards = 16;
    struct alignas(cache_line_bytes) Start {
        std::atomic<std::uint32_t> next{0};
    };
    static std::uint32_t shard() noexcept {
        const auto self = static_cast<std::uint64_t>(pthread_self());
        return static_cast<std::uint32_t>(self * 0x9E37'79B9'7F4A'7C15u >> 60);
    }

    std::array<Slot, slots_max> slots_;
    std::array<Start, shards> starts_;
};

}  // namespace hiroba::net::offload
