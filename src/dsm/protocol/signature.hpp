// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node knows of the writes that happened before now: a bounded list of write notices,
// the newest per extent, and min_wts for what no longer fits (docs/protocol.md#signature).
// Invariant: at most `capacity` live notices after trim(); every notice ever dropped while some
// node might lack it has wts <= min_wts. Entries are in the order learned, so a peer's news is a
// suffix. Source: the paper, sections 2.5 and 3.3. No allocation, no lock: the caller provides
// both.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "dsm/protocol/timestamp.hpp"

namespace hiroba::dsm {

using BlockId = std::uint32_t;

/// "Node `node` has merged `count` blocks from `block` on; its copy of each is of `wts` and may be
/// read until `rts`." What a release merges has one `wts` as long as each block's leases allow, so
/// that blocks in a row are one notice.
struct Notice {
    Timestamp wts;
    Timestamp rts;
    BlockId block = 0;
    NodeId node;
    std::uint32_t count = 1;
    std::uint32_t unused = 0;

    /// Whether `next` tells of the blocks behind these, in the same words.
    constexpr bool goes_on_with(const Notice& next) const {
        return next.node == node && next.wts == wts && next.rts == rts &&
               next.block == std::uint64_t{block} + count;
    }
    constexpr bool same_blocks(const Notice& other) const {
        return block == other.block && count == other.count;
    }
};
static_assert(sizeof(Notice) == 32);

/// Position in the order of learning; grows for ever.
using NewsSequence = std::uint64_t;

class Signature {
public:
    struct Entry {
        Notice notice;
        NewsSequence sequence = 0;
        std::uint32_t slot = 0;  ///< where the index points here
        bool live = false;
    };
    /// Index slots needed for a capacity; a power of two.
    static constexpr std::size_t index_slots(std::size_t capacity);
    static constexpr std::size_t entries_for(std::size_t capacity) { return 4 * capacity; }

    /// @param capacity K, at least 1
    /// @param entries  entries_for(capacity), zeroed  @param index  index_slots(capacity), zeroed
    Signature(std::size_t capacity, std::span<Entry> entries, std::span<std::uint32_t> index);

    /// Adds a notice unless a newer or equal one of the same blocks is here. `known_to_all`:
    /// sequences up to it may be dropped for nothing when room is needed. Returns whether it was
    /// news.
    bool add(const Notice& notice, NewsSequence known_to_all);
    void raise_min_wts(Timestamp min_wts) { min_wts_ = std::max(min_wts_, min_wts); }

    /// Drops what all know, then, while more than K are left, those of the smallest wts, raising
    /// min_wts to cover them. Returns how many were dropped into min_wts.
    std::size_t trim(NewsSequence known_to_all);
    /// Every node has everything in here: empties it for nothing.
    void forget_all();

    Timestamp min_wts() const { return min_wts_; }
    NewsSequence last_sequence() const { return next_sequence_ - 1; }
    /// A place in the order of learning for something that is no notice.
    NewsSequence mark() { return next_sequence_++; }
    std::size_t live() const { return live_; }
    /// All that was learned and not yet dropped, oldest first.
    std::span<const Entry> entries() const { return entries_.first(used_); }

    /// Calls visit(notice) for every live notice learned after `since`, oldest first.
    template <class Visit>
    void since(NewsSequence since, Visit&& visit) const {
        for (std::size_t i = first_after(since); i < used_; ++i) {
            if (entries_[i].live) visit(entries_[i].notice);
        }
    }

private:
    std::size_t first_after(NewsSequence since) const;
    std::uint32_t slot_of(const Notice& notice) const;
    void rebuild(std::size_t kept);
    std::size_t drop_oldest_writes();

    std::size_t capacity_;
    std::span<Entry> entries_;
    std::span<std::uint32_t> index_;  ///< 0: empty, else entry position + 1; linear probing
    std::size_t used_ = 0;
    std::size_t live_ = 0;
    NewsSequence next_sequence_ = 1;
    Timestamp min_wts_;
};

constexpr std::size_t Signature::index_slots(std::size_t capacity) {
    std::size_t slots = 16;
    while (slots < 2 * entries_for(capacity)) slots *= 2;
    return slots;
}

}  // namespace hiroba::dsm
