// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/unmerged_blocks.hpp"

#include "base/fatal.hpp"

namespace hiroba::dsm {

void UnmergedBlocks::put(BlockEntry& entry, BlockId block) noexcept {
    if (entry.unmerged) return;
    entry.unmerged = true;
    const std::scoped_lock guard{latch_};
    const std::size_t count = count_.load(std::memory_order_relaxed);  // under the latch
    HIROBA_INVARIANT(count < blocks_.size(), "%lu unmerged blocks", count);
    blocks_[count] = block;
    count_.store(count + 1, std::memory_order_release);  // pairs with any()
}

}  // namespace hiroba::dsm
