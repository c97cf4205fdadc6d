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
    entries_.begin_discard();
    bool all = true;
    on_runtime_stack([&] {
        const std::scoped_lock role{acquire_};
        for (const AddressRange& range : ranges) {
            const std::uint64_t begin = *map().offset_of(range.address);
            const bool whole = space_.offset_in_block(begin | range.bytes) == 0;
            HIROBA_INVARIANT(whole, "discard of %lu bytes at 0x%lx: blocks have %lu", range.bytes,
                             range.address, block_bytes());
            all &= discard_blocks(block_at(begin), block_at(begin + range.bytes));
        }
    });
    return all;
}

void Node::discarded_everywhere() noexcept { entries_.end_discard(); }

// Every block, used here or not: of each a notice may be remembered, or come yet.
bool Node::discard_blocks(BlockId first, BlockId end) noexcept {
    trace("dsm.discard", first, end);
    bool all = true;
    for (BlockId block = first; block < end; ++block) {
        if (acquire_.invalidation().is_full()) finish_discards();
        BlockEntry& entry = entries_[block];
        entry.latch.lock();
        if (must_stay(block) || entry.guards_stack) {
            entry.latch.unlock();
            all = false;
            continue;
        }
        forget_kept(block);
        if (entry.state == BlockState::pinned) {
            entry.state = take(entry, BlockEvent::unpinned).next;
        }
        const BlockStep next = take(entry, BlockEvent::freed);
        entry.state = next.next;
        entry.brought = entry.held_back = entry.no_twin = false;
        const bool mapped = has(next.work, BlockWork::unmap);
        acquire_.invalidation().add(block, mapped ? program_range(block) : AddressRange{});
    }
    finish_discards();
    return all;
}

// With the latch, of memory that the program has freed. What was written while the block was
// exclusive belongs to no object any more, and no release tells of it: the public copy stays what
// its version names until it is discarded with the private one.
void Node::forget_kept(BlockId block) noexcept {
    if (entries_[block].state != BlockState::exclusive) return stop_keeping(block);
    share_again(block);
    engine_->track(program_range(block));
    count(&PlaceCounters::given_up);
    lock_.unlock(block, lock_.held_token(block));
}

// Discards the blocks whose latches are closed. They become inaccessible first, so that no thread
// writes what is gone.
void Node::finish_discards() noexcept {
    Invalidation& freed = acquire_.invalidation();
    if (!freed.ranges().empty()) engine_->unmap(freed.ranges());
    const std::span blocks = freed.blocks();
    for (std::size_t i = 0; i < blocks.size();) {
        const std::size_t first = i++;
        while (i < blocks.size() && blocks[i] == blocks[i - 1] + 1) ++i;
        space_.memory().discard(offset_of(blocks[first]), (i - first) * block_bytes());
        copies_.discard(blocks[first], i - first);
    }
    for (const BlockId block : blocks) entries_[block].latch.unlock();
    freed.clear();
}

}  // namespace hiroba::dsm
