// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/races/early_blocks.hpp"

#include <algorithm>

namespace hiroba::dsm {

using Use = EarlyBlock::Use;

void EarlyBlocks::note_brought(BlockEntry& entry, BlockId block, LastChange last) noexcept {
    const bool again = entry.early && !epochs_.is_known(blocks_[block].last);
    const bool listed = entry.early;
    entry.early = !epochs_.is_known(last);
    if (!entry.early) return;

    const std::scoped_lock guard{latch_};
    Seen& seen = seen_[last.node.value];
    if (epochs_.is_known({last.node, seen.epoch})) seen = {last.epoch, block, false};
    seen.epoch = std::max(seen.epoch, last.epoch);
    seen.in_more_blocks |= seen.block != block;
    EarlyBlock& early = blocks_[block];
    const bool may_retry = early.alone && (early.use == Use::written || early.use == Use::retried);
    if (!listed || !entry.brought)
        early.use = !again ? Use::none : may_retry ? Use::retried : Use::again;
    early.alone = !is_seen_elsewhere(block);
    early.last = last;
    if (!listed) put_on_list(block);
}

void EarlyBlocks::note_first_access(BlockId block, std::uint64_t at, bool written,
                                    bool meets) noexcept {
    EarlyBlock& early = blocks_[block];
    const auto offset = static_cast<std::uint32_t>(at);
    if (meets) early.use = Use::none;
    // Made stale before the program came to its write: the same fault once more.
    if (early.use == Use::retried)
        early.use = written && offset == early.at ? Use::written : Use::again;
    if (early.use != Use::none) return;
    early.use = written ? Use::written : Use::read;
    early.at = offset;
}

bool EarlyBlocks::is_seen_elsewhere(BlockId block) const noexcept {
    for (std::uint32_t node = 0; node < seen_.size(); ++node) {
        const Seen& seen = seen_[node];
        if (epochs_.is_known({NodeId{node}, seen.epoch})) continue;
        if (seen.in_more_blocks || seen.block != block) return true;
    }
    return false;
}

std::size_t EarlyBlocks::take_listed(List& blocks) noexcept {
    const std::scoped_lock guard{latch_};
    const std::size_t count = count_.load(std::memory_order_relaxed);  // under the latch
    std::copy_n(listed_.begin(), count, blocks.begin());
    count_.store(0, std::memory_order_relaxed);
    return count;
}

// Full, it leaves out what comes last.
void EarlyBlocks::put_on_list(BlockId block) noexcept {
    const std::size_t count = count_.load(std::memory_order_relaxed);  // under the latch
    if (count == listed_max) return;
    listed_[count] = block;
    count_.store(count + 1, std::memory_order_relaxed);
}

}  // namespace hiroba::dsm
