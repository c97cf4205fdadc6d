// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks that hold bytes of this node which are not merged and which write tracking does not
// see, for the next release.
// Invariant: a block is on the list exactly while its entry says so (BlockEntry::unmerged), but for
// the release that has taken it and looks at it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/block/block_table.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class UnmergedBlocks {
public:
    explicit UnmergedBlocks(std::size_t blocks) : blocks_(blocks) {}

    /// With the block's latch.
    void put(BlockEntry& entry, BlockId block) noexcept;
    /// A thread sees the blocks that it has put there, and those of others that it must know of.
    bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
    /// Moves all of them to `to`. Returns how many. In the release role.
    std::size_t take(BlockId* to) noexcept {
        if (!any()) return 0;
        const std::scoped_lock guard{latch_};
        const std::size_t count = count_.load(std::memory_order_relaxed);  // under the latch
        std::memcpy(to, blocks_.data(), count * sizeof(BlockId));
        count_.store(0, std::memory_order_relaxed);
        return count;
    }

private:
    friend class NodeView;

    Latch latch_;
    SparseArray<BlockId> blocks_;
    std::atomic<std::size_t> count_{0};  ///< changes under the latch
};

}  // namespace hiroba::dsm
