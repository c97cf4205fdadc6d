// SPDX-License-Identifier: BSD-3-Clause
// Role: memory that the program has freed goes back to the machine.
// Invariant: a block's private and public copy become zero together, under its latch, while it is
// inaccessible; its versions stay what they are. When all nodes have done so each version names
// zeros, whoever has it. Until then nobody may bring the block here unasked: what another node
// still has of it would outlive the discard under a version that names zeros elsewhere. Hence the
// state `discarded`, and no fetch ahead of time while a discard is under way (invariant 12).
#include <mutex>

#include "base/thread_context.hpp"
#include "base/trace.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

bool Node::discard(std::span<const AddressRange> ranges) noexcept {
    discards_open_.fetch_add(1, std::memory_order_relaxed);  // seen with the states, by the latches
    bool all = true;
    on_runtime_stack([&] {
        const std::scoped_lock role{acquire_};
        for (const AddressRange& range : ranges) {
            const std::uint64_t begin = *map_.offset_of(range.address);
            const bool whole = ((begin | range.bytes) & (block_bytes_ - 1)) == 0;
            HIROBA_INVARIANT(whole, "discard of %lu bytes at 0x%lx: blocks have %lu", range.bytes,
                             range.address, block_bytes_);
            all &= discard_blocks(block_at(begin), block_at(begin + range.bytes));
        }
    });
    return all;
}

void Node::discarded_everywhere() noexcept {
    // Release: pairs with may_come_unasked(). What a fetch brings from here on is zero, or newer.
    const std::uint32_t open = discards_open_.fetch_sub(1, std::memory_order_release);
    HIROBA_INVARIANT(open > 0, "%u discards under way", open);
}

// Every block, used here or not: of each a notice may be remembered, or come yet.
bool Node::discard_blocks(BlockId first, BlockId end) noexcept {
    trace("dsm.discard", first, end);
    bool all = true;
    for (BlockId block = first; block < end; ++block) {
        if (invalidation_.blocks.size() == invalidation_.blocks.capacity()) finish_discards();
        BlockEntry& entry = entries_[block];
        entry.latch.lock();
        if (must_stay(block) || entry.guards_stack) {
            entry.latch.unlock();
            all = false;
            continue;
        }
        stop_exclusive(block);
        if (entry.state == BlockState::pinned) {
            entry.state = take(entry, BlockEvent::unpinned).next;
        }
        const BlockStep next = take(entry, BlockEvent::freed);
        entry.state = next.next;
        entry.brought = entry.held_back = false;
        if (has(next.work, BlockWork::unmap)) invalidation_.ranges.push_back(program_range(block));
        invalidation_.blocks.push_back(block);
    }
    finish_discards();
    return all;
}

// Of the blocks whose latches are closed: inaccessible first, so that nobody writes what is gone.
void Node::finish_discards() noexcept {
    if (!invalidation_.ranges.empty()) engine_->unmap(invalidation_.ranges);
    const auto& blocks = invalidation_.blocks;
    for (std::size_t i = 0; i < blocks.size();) {
        const std::size_t first = i++;
        while (i < blocks.size() && blocks[i] == blocks[i - 1] + 1) ++i;
        const std::uint64_t offset = offset_of(blocks[first]);
        private_memory_.discard(offset, (i - first) << block_shift_);
        data_.discard(offset, (i - first) << block_shift_);
    }
    for (const BlockId block : blocks) entries_[block].latch.unlock();
    invalidation_.ranges.clear();
    invalidation_.blocks.clear();
}

}  // namespace hiroba::dsm
