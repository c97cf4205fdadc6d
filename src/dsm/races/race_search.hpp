// SPDX-License-Identifier: BSD-3-Clause
// Role: finds writes of two nodes to the same bytes that no synchronization of the program orders
// (docs/protocol.md#unordered). Two ways: where two versions meet, by comparing; and where a copy
// with the other's bytes was here before this node wrote, by what the other has noted.
// Invariant: nothing is told of a program that orders its writes, be it by a flag that it only
// loads and stores: what might have been one keeps this node silent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/sparse_array.hpp"
#include "base/sync_place.hpp"
#include "dsm/block/block_space.hpp"
#include "dsm/block/block_table.hpp"
#include "dsm/block/change_log.hpp"
#include "dsm/block/scratch_pool.hpp"
#include "dsm/counts/statistics.hpp"
#include "dsm/memory/merge.hpp"
#include "dsm/news/held_back.hpp"
#include "dsm/news/known_news.hpp"
#include "dsm/races/early_blocks.hpp"
#include "gas/gas.hpp"

namespace hiroba::dsm {

/// A block as this node has changed it, as it was before, and as the other node has changed it.
struct ThreeCopies {
    const std::byte* ours;
    const std::byte* twin;
    const std::byte* home;
};

/// Thread: any; with the block's latch where a block is named; async-signal-safe where the provider
/// completes inline.
class RaceSearch {
public:
    /// The parts that the search looks at and does not change, but for BlockEntry::early.
    struct Around {
        NodeId self;
        const BlockSpace& space;
        BlockTable& entries;
        PublicCopies& copies;
        HeldBack& held_back;
        KnownNews& news;
        ScratchPool& scratch;
        Statistics& statistics;
    };
    static std::size_t bytes_of_changes(const AddressMap& map, const MemoryOptions& options);
    /// @param changes  of bytes_of_changes()
    RaceSearch(gas::Segment changes, const Around& around, const MemoryOptions& options);
    void attach() { changes_.attach(); }
    void on_race(RaceReport report, void* context) noexcept;

    /// False: races are not looked for.
    bool looks() const noexcept { return epochs().are_kept(); }
    /// The mark of what this node merges now.
    LastChange this_change() const noexcept { return epochs().this_change(); }
    /// A thread has synchronized there. Only told, never decided by.
    void note_synchronization(const SyncPlace& place) noexcept {
        // A region's is its function, the others' lie behind a call: all as the latter.
        last_synchronized_.store(place.address + (is_function(place) ? 1 : 0),
                                 std::memory_order_relaxed);
    }

    // Where two versions meet.
    /// The twin is about to be replaced.
    void look_for_races(BlockId block, const ThreeCopies& copies, NodeId other) noexcept;
    /// Reports the races that a merge has found.
    void look_at_merge(BlockId block, const MergeOutcome& outcome, const ThreeCopies& copies,
                       NodeId other) noexcept {
        if (is_worth_telling(outcome)) report_races(block, copies, other);
    }

    // Where this node wrote on top of the other's bytes.
    void note_brought(BlockId block, LastChange last) noexcept {
        if (looks()) early_.note_brought(around_.entries[block], block, last);
    }
    void note_first_access(BlockId block, std::uint64_t at, bool written, bool meets) noexcept {
        early_.note_first_access(block, at, written, meets);
    }
    /// The program has not come upon what was brought early. With the block's latch.
    bool is_untouched(BlockId block) const noexcept {
        return around_.entries[block].early && early_[block].use == EarlyBlock::Use::none;
    }
    /// Looks at bytes that are about to be merged, if they were written on top of bytes that came
    /// early.
    void look_before_merge(BlockId block, const std::byte* ours, const std::byte* twin) noexcept {
        if (around_.entries[block].early) [[unlikely]]
            look_for_unordered(block, ours, twin);
    }
    /// An atomic reads what the last one here has left, and so is synchronized with it. What came
    /// before that is taken over when the atomic is over.
    void note_known(BlockId block) noexcept;
    /// Behind an atomic, with nothing held.
    void know_what_atomics_ordered() noexcept;
    /// Takes over what a synchronization of the program has told. With nothing held.
    void acquire_known() noexcept;
    /// Likewise, a flush; with the latch of the flushes.
    void know_what_was_flushed() noexcept;

    // Notes this node's changes for nodes that look. note(words): as ChangeLog::note() has it, or
    // with nullptr where no node asks.
    template <class Note>
    void note_in_log(BlockId block, Note&& note) noexcept {
        if (!looks()) return note(nullptr);
        const Scratch words{around_.scratch};
        change_log_.note(block, this_change().epoch, words.get(), note);
    }
    void note_own_changes(BlockId block, const std::byte* ours, const std::byte* twin) noexcept;
    void note_atomic(BlockId block, std::size_t at, const std::byte* ours, const std::byte* twin,
                     std::size_t bytes) noexcept {
        atomic_log_.note_atomic(block, this_change().epoch, at, ours, twin, bytes);
    }
    /// Likewise, of a block whose atomics were not noted one by one. With all closed there.
    void note_atomics(BlockId block, const std::byte* ours, const std::byte* twin) noexcept {
        for (std::size_t at = 0; at < around_.space.block_bytes(); at += sizeof(std::uint64_t))
            if (std::memcmp(ours + at, twin + at, sizeof(std::uint64_t)) != 0)
                note_atomic(block, at, ours + at, twin + at, sizeof(std::uint64_t));
    }
    /// Likewise; false: it takes longer, and nothing was noted.
    bool note_atomic_now(BlockId block, std::size_t at, const std::byte* ours,
                         const std::byte* twin, std::size_t bytes) noexcept {
        return atomic_log_.note_atomic_now(block, this_change().epoch, at, ours, twin, bytes);
    }

private:
    friend class NodeView;

    static constexpr unsigned races_per_merge_max = 16;

    KnownEpochs& epochs() const noexcept { return around_.news.epochs(); }
    bool is_worth_telling(const MergeOutcome& outcome) const noexcept;
    void report_races(BlockId block, const ThreeCopies& copies, NodeId other) noexcept;
    void report_race(std::uintptr_t address, std::uint32_t bytes, NodeId other) noexcept;
    void look_for_unordered(BlockId block, const std::byte* ours, const std::byte* twin) noexcept;
    bool may_ask(NodeId node, LastChange last, bool all) const noexcept;
    void look_at_early_blocks() noexcept;

    Around around_;
    MemoryOptions::Race told_;
    gas::Segment changes_;
    ChangeLog change_log_, atomic_log_;
    EarlyBlocks early_;
    /// Atomics here that followed one of another node; those behind which the program knows what
    /// that one followed.
    std::atomic<std::uint64_t> atomics_behind_others_{0}, atomics_known_{0};
    /// Where the program's threads synchronized last, 0: nowhere yet.
    std::atomic<std::uintptr_t> last_synchronized_{0};
    std::atomic<RaceReport> report_{nullptr};
    void* report_context_ = nullptr;
};

}  // namespace hiroba::dsm
