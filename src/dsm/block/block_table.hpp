// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node keeps of each block: a private entry, and a registered record peers reach.
// Invariant: an entry changes only under its latch; a record's lock words change only by CAS or by
// the lock's holder. Zero-filled memory is a block nobody has touched.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/block/atomic_passes.hpp"
#include "dsm/protocol/block.hpp"
#include "dsm/protocol/signature.hpp"
#include "dsm/protocol/stamp.hpp"

namespace hiroba::dsm {

/// How often the block was missed.
struct MissRun {
    std::uint16_t length = 0;   ///< of blocks missed in a row that began here
    std::uint8_t uses = 0;      ///< since the length was learned
    std::uint8_t renewals = 0;  ///< misses of this block in a row that moved no bytes
};

/// How a stale block became so, and whether the program may reach it.
struct Stale {
    bool pinned = false;  ///< accessible all the same: the acquire under way brings the rest
    bool aside = false;   ///< made so by the background flusher, not used since
};

/// More about a block whose private copy lacks bytes that the public one has.
struct Withheld {
    bool listed = false;   ///< on the list of HeldBack
    ReleaseNumber by = 0;  ///< this node's release that saw the bytes
};

/// Writes of this node's program to the block.
struct Writes {
    std::uint8_t guess = 0;  ///< how often in a row a write has followed a read miss
    /// Faults of writes under way, also while they hold nothing; an atomic of this node lets them
    /// go first. Without the latch.
    std::atomic<std::uint16_t> faults{0};
};

/// Whether a block is used after it has become stale (docs/decisions/blocks-brought-ahead.md).
struct Following {
    std::uint8_t uses = 0;       ///< in a row
    std::uint8_t brought = 0;    ///< how often it was brought up to date in place since the last
    std::uint16_t stale_in = 0;  ///< the acquire that last made it inaccessible, counted modulo
};

/// How often in a row a block was given up ahead in vain, behind each place of the program. Places
/// share eight counters.
class VainGiveUps {
public:
    static constexpr unsigned count_max = 3;
    unsigned behind(std::uint8_t place) const noexcept {
        return counts_ >> shift(place) & count_max;
    }
    void raise(std::uint8_t place) noexcept {
        if (behind(place) < count_max)
            counts_ = static_cast<std::uint16_t>(counts_ + (1u << shift(place)));
    }
    void clear(std::uint8_t place) noexcept {
        counts_ = static_cast<std::uint16_t>(counts_ & ~(count_max << shift(place)));
    }

private:
    static unsigned shift(std::uint8_t place) noexcept { return place % 8u * 2; }
    std::uint16_t counts_ = 0;  ///< of two bits each
};

/// Whether a block is this node's alone (docs/decisions/a-home-keeps-the-lock.md).
struct Trial {
    std::uint16_t unread = 0;   ///< versions in a row published here that nobody read from the home
    std::uint8_t patience = 0;  ///< 2 to the power of how many must be before it is exclusive
    std::uint8_t streak = 0;    ///< versions by releases close to each other, of those
    std::uint8_t visits = 0;    ///< how often it came from another node, since patience changed
    bool proven = false;        ///< the last time it was exclusive was worth it
    bool ahead = false;         ///< given up before anybody asked, and not wanted by any node since
    std::uint8_t ahead_at = 0;  ///< behind which place of the program that was
    VainGiveUps vain;           ///< until it was exclusive again
    bool asked = false;         ///< another node has asked for it
    bool away = false;          ///< given up, and no bytes of another node have come since
    bool wanders = false;       ///< another node has written it the last time it was given up
    std::uint8_t streak_patience = 0;  ///< how often more of them were taken for too many
    bool as_taken = false;  ///< the public copy is what the block was when it was taken, in `by`
    Timestamp wts;          ///< of the version that cannot be read by its notice; 0: none
    /// This node's release that told of the first of such versions, between which nobody has read
    /// any; of an exclusive block, since when it is.
    ReleaseNumber by = 0;
    Epoch exclusive_since = 0;  ///< the last of which its changes are noted
};

/// What releases have found of late.
struct Merging {
    std::uint8_t vain = 0;        ///< in a row that were told of the block and found it unchanged
    bool watched = false;         ///< it is told of only where it was written, and was as before
    std::uint8_t patience = 0;    ///< 2 to the power of how often that is merged nevertheless
    std::uint16_t rewritten = 0;  ///< so often since it last was
    bool given_up = false;        ///< none has looked at it since it was exclusive
    bool meets_others = false;    ///< the last one found bytes at the home that were not here
};

/// This node's atomics on a block. They are hints where they are read without its latch.
struct AtomicUse {
    bool is_open = false;       ///< atomics may go by (atomic_passes.hpp); with the latch
    std::uint8_t noted = 0;     ///< with the latch, since the lock is kept; up to noted_min
    std::uint64_t at_ns = 0;    ///< when the last one ended; 0: none
    std::uint64_t word = 0;     ///< what that left there
    std::uint32_t at = 0;       ///< where in the block that was
    bool came = false;          ///< the block came from another node for it
    bool vain = false;          ///< it is what was found and left before, too
    std::uint8_t patience = 0;  ///< 2 to the power of how many make a row, beside the least
    std::uint16_t apart = 0;    ///< of one row, however long ago each was
    std::uint16_t row = 0;      ///< in a row here; of a held block, since it is
    ReleaseNumber release = 0;  ///< of a held block, the last that had begun before the last one
    /// The node that was asked for a turn, and not told that it is over; its number + 1. Without
    /// the latch.
    std::atomic<std::uint32_t> turn_asked{0};

    static constexpr std::uint8_t noted_min = 8;   ///< they are worth what it costs to close it
    static constexpr std::uint16_t worth_min = 8;  ///< in a row, or the next has to be longer
    /// With the latch: whether one that left `now` at `offset` found and left it as the last one.
    bool is_vain(std::size_t offset, std::uint64_t now) const noexcept {
        return now == word && offset == at;
    }
    void note_word(std::size_t offset, std::uint64_t now) noexcept {
        vain = is_vain(offset, now);
        word = now;
        at = static_cast<std::uint32_t>(offset);
    }
    /// With the latch: the last release that has begun.
    void note_release(ReleaseNumber begun) noexcept { release = std::max(release, begun); }
};

/// AtomicUse::row behind one more. Far from its end it goes in a circle, so that one in 16 counts.
constexpr std::uint16_t next_in_row(std::uint16_t row) noexcept {
    return row == UINT16_MAX ? UINT16_MAX - 15 : static_cast<std::uint16_t>(row + 1);
}

/// The waits of plain loads on the block, without its latch.
struct SpinUse {
    std::atomic<std::uint8_t> waits{0};  ///< so much is expected of waiting in a load's fault
    std::atomic<bool> in_vain{false};    ///< nothing came while the last of them lasted
};

/// One block at this node, in private memory.
struct BlockEntry {
    Latch latch;
    BlockState state = BlockState::invalid;
    bool queued = false;        ///< in the lease queue
    bool unmerged = false;      ///< on the list of unmerged blocks
    bool guards_stack = false;  ///< below a stack of this node: a touch is an overflow
    bool watched = false;       ///< fetched ahead and not mapped, so that its use is noticed
    bool brought = false;       ///< bytes of lease rts are here; what came before them is not
    bool held_back = false;     ///< the private copy lacks bytes that the public one has
    bool no_twin = false;       ///< the private copy has its version's bytes, the public one not
    Stale stale;
    bool early = false;  ///< may hold bytes of others the program need not know of
    Writes writes;
    std::uint16_t pins =
        0;  ///< system calls under way on it, or it is a stack: it stays accessible
    MissRun run;
    Merging merging;
    Following follow;
    bool knows_writer = false;  ///< notice_node says something
    Timestamp rts;              ///< until when this node's copy may be read, if it is not the home
    NodeId notice_node;    ///< who wrote last, as far as this node knows; also without a notice
    Timestamp notice_wts;  ///< of the remembered notice; 0: none
    Timestamp notice_rts;
    Withheld withheld;
    Trial trial;
    AtomicUse atomics;
    SpinUse spin;
};

/// The entries of all blocks. Thread: any; async-signal-safe.
class BlockTable {
public:
    explicit BlockTable(std::size_t blocks) : entries_(blocks) {}
    BlockEntry& operator[](BlockId block) noexcept { return entries_[block]; }
    const BlockEntry& operator[](BlockId block) const noexcept { return entries_[block]; }
    std::size_t size() const noexcept { return entries_.size(); }

    /// Memory is freed here from now until end_discard(): it is not over everywhere before. Seen
    /// with the states, by the latches.
    void begin_discard() noexcept { discards_open_.fetch_add(1, std::memory_order_relaxed); }
    void end_discard() noexcept {
        // Release: pairs with may_come_unasked(). What a fetch brings from here on is zero, or
        // newer.
        const std::uint32_t open = discards_open_.fetch_sub(1, std::memory_order_release);
        HIROBA_INVARIANT(open > 0, "%u discards under way", open);
    }
    /// Whether a block of this state may be fetched that the program has not asked for.
    bool may_come_unasked(BlockState state) const noexcept {
        // Acquire: pairs with end_discard().
        return state == BlockState::invalid ||
               (state == BlockState::discarded &&
                discards_open_.load(std::memory_order_acquire) == 0);
    }

    /// Where threads of this node make atomics without a call.
    AtomicPasses& passes() noexcept { return passes_; }

private:
    SparseArray<BlockEntry> entries_;
    AtomicPasses passes_;
    std::atomic<std::uint32_t> discards_open_{0};  ///< begun here, not over everywhere
};

/// Where the home may be; empty: nothing is known here but what its lock's word says.
inline std::optional<NodeId> home_guess(const BlockEntry& entry, NodeId self) noexcept {
    return entry.knows_writer && entry.notice_node != self ? std::optional{entry.notice_node}
                                                           : std::nullopt;
}

/// What has changed in a public copy since one of its former versions.
struct LinesSince {
    std::uint64_t base;   ///< the version's wts, plus 1; 0: none
    std::uint64_t lines;  ///< the copy equals that version but for these; of none: see discard()
};

/// One block at this node, in registered memory: the lock's word and token, and the version of
/// the public copy. Cache lines of its own, so that blocks of different nodes never share one: what
/// each miss looks at, and what a miss with an older version looks at besides.
struct alignas(64) BlockRecord {
    std::uint64_t link;        ///< LinkWord
    std::uint64_t token_home;  ///< at the lock's place: home + 1, 0: initial; bit 63: handed over
    std::uint64_t token_wts;
    std::uint64_t token_rts;     ///< LeaseWord: readers extend it at the home
    std::uint64_t copy_version;  ///< odd while the public copy changes
    std::uint64_t copy_wts;      ///< of the public copy; never falls
    std::uint64_t copy_stamp;    ///< Stamp of the public copy: what came before it
    std::uint64_t copy_change;   ///< of the public copy: who merged last (LastChange)
    static constexpr std::size_t versions = 4;
    LinesSince copy_since[versions];  ///< of the public copy: what changed since its last versions
};
static_assert(sizeof(BlockRecord) == 128);

/// What travels with a block's lock. Where the lock is free, the home is, in most cases: whoever
/// takes it merges there, and readers do without it. (A taker that may not have the home's bytes
/// gives the lock back: then the lock is free there, and closed to readers.)
struct LockToken {
    NodeId home;  ///< whose copy is the newest: where the lock was taken
    Timestamp wts;
    Timestamp rts;
    bool read = false;  ///< readers have extended the home's lease since it published
    bool sole = false;  ///< no node can read its copy
};

}  // namespace hiroba::dsm
