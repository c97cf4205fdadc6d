// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks whose public copy holds bytes of others that this node has merged and not acquired:
// the private copy lacks them until an acquire shows them (docs/protocol.md#before).
// Invariant: while a block is held back its private copy stays as it was at the merge, and a copy
// of that is the twin of what is written here meanwhile.
#pragma once

#include <cstddef>
#include <mutex>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/block/block_space.hpp"
#include "dsm/block/block_table.hpp"
#include "dsm/block/public_copies.hpp"
#include "dsm/block/scratch_pool.hpp"

namespace hiroba::dsm {

/// Thread: with the block's latch, where nothing else is said; async-signal-safe.
class HeldBack {
public:
    HeldBack(const BlockSpace& space, BlockTable& entries, PublicCopies& copies,
             ScratchPool& scratch)
        : space_(space),
          entries_(entries),
          copies_(copies),
          scratch_(scratch),
          bases_(space.map().space_bytes()),
          blocks_(entries.size()) {}

    /// Bytes of the private copy that differ from this twin were written here, and are not merged.
    const std::byte* twin_of(BlockId block) noexcept {
        if (entries_[block].no_twin) return space_.private_copy(block);
        return entries_[block].held_back ? bases_.data() + space_.offset_of(block)
                                         : copies_.own(block);
    }
    /// @param ours  the private copy as it was merged
    /// @param by    this node's release that merges it
    void hold_back(BlockId block, const std::byte* ours, ReleaseNumber by) noexcept;
    /// The private copy gets what it lacks.
    void stop(BlockId block) noexcept;

    /// In the acquire role: what releases up to this one hold back may be shown.
    void may_show_up_to(ReleaseNumber release) noexcept { shown_up_to_ = release; }
    bool may_show(const BlockEntry& entry) const noexcept {
        return !entry.held_back || entry.withheld.by <= shown_up_to_;
    }
    /// Calls stays(block) for each on the list, with nothing held. Returns whether none stayed. In
    /// the acquire role.
    template <class Stays>
    bool show_all(Stays&& stays) noexcept;

private:
    friend class NodeView;

    const BlockSpace& space_;
    BlockTable& entries_;
    PublicCopies& copies_;
    ScratchPool& scratch_;
    SparseArray<std::byte> bases_;
    Latch latch_;
    SparseArray<BlockId> blocks_;  ///< under the latch
    std::size_t count_ = 0;        ///< likewise
    ReleaseNumber shown_up_to_ = 0;
};

template <class Stays>
bool HeldBack::show_all(Stays&& stays) noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0;; ++i) {
        BlockId block;
        {
            const std::scoped_lock guard{latch_};
            if (i == count_) {
                count_ = kept;
                return kept == 0;
            }
            block = blocks_[i];
        }
        if (!stays(block)) continue;
        const std::scoped_lock guard{latch_};
        blocks_[kept++] = block;
    }
}

}  // namespace hiroba::dsm
