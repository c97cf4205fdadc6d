// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks that were brought here with changes of other nodes which no synchronization of the
// program tells of, and how the program first came upon each (docs/protocol.md#unordered).
// Invariant: a block may be such a one only while its entry says so (BlockEntry::early), which is
// taken back when the program has heard of the change.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/block/block_table.hpp"
#include "dsm/news/known_epochs.hpp"

namespace hiroba::dsm {

struct EarlyBlock {
    enum class Use : std::uint8_t {
        none,     ///< brought by the runtime
        read,     ///< the program's first access was not a write
        written,  ///< it was a write
        again,    ///< another such version was here before
        retried,  ///< likewise, and the first access, a write, may not have been made yet
    } use = Use::none;
    bool alone = false;    ///< no other such block was here
    std::uint32_t at = 0;  ///< offset of the first access
    LastChange last;
};

/// Thread: with the block's latch, where nothing else is said; async-signal-safe.
class EarlyBlocks {
public:
    static constexpr std::size_t listed_max = 64;

    /// @param blocks  that there are
    EarlyBlocks(const KnownEpochs& epochs, std::size_t blocks)
        : epochs_(epochs), seen_(epochs.nodes()), blocks_(epochs.are_kept() ? blocks : 0) {}

    const EarlyBlock& operator[](BlockId block) const noexcept { return blocks_[block]; }
    /// The newest bytes of the block, which `last` has changed, are here. What was brought before
    /// and never shown, the program has not seen: it is no other version.
    void note_brought(BlockEntry& entry, BlockId block, LastChange last) noexcept;
    /// In the fault that made it accessible or a later one. meets: the bytes came while a write
    /// waited, whatever other threads have read of them since.
    void note_first_access(BlockId block, std::uint64_t at, bool written, bool meets) noexcept;
    /// Whether it still is early, by what the program knows now.
    bool is_still(BlockEntry& entry, BlockId block) const noexcept {
        entry.early = entry.early && !epochs_.is_known(blocks_[block].last);
        return entry.early;
    }
    /// Whether the program has come upon such bytes of another block. Thread: any.
    bool are_seen_beside(BlockId block) noexcept {
        const std::scoped_lock guard{latch_};
        return is_seen_elsewhere(block);
    }

    /// Some of the blocks are on a list. Thread: any.
    bool any_listed() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
    using List = std::array<BlockId, listed_max>;
    /// Empties it. Returns how many.
    std::size_t take_listed(List& blocks) noexcept;
    void list(BlockId block) noexcept {
        const std::scoped_lock guard{latch_};
        put_on_list(block);
    }

private:
    friend class NodeView;

    /// Where changes of one node are visible that no synchronization of the program tells of.
    struct Seen {
        Epoch epoch = 0;  ///< the newest of them
        BlockId block = 0;
        bool in_more_blocks = false;
    };
    // Both under latch_.
    bool is_seen_elsewhere(BlockId block) const noexcept;
    void put_on_list(BlockId block) noexcept;

    const KnownEpochs& epochs_;
    Latch latch_;
    std::vector<Seen> seen_;             ///< per node, under latch_
    SparseArray<EarlyBlock> blocks_;     ///< each under its block's latch
    List listed_{};                      ///< under latch_
    std::atomic<std::size_t> count_{0};  ///< likewise
};

}  // namespace hiroba::dsm
