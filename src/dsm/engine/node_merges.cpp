// SPDX-License-Identifier: BSD-3-Clause
// Role: a release's merges where the other nodes' memory is not mapped: the locks of blocks homed
// elsewhere are asked for together, and what the merges need of their homes comes with them
// (docs/protocol.md#together).
// Invariant: the latches of all are got by trying, but the first. While this node waits for a lock
// it holds no other: what was got is merged and unlocked first. It waits in the order of blocks, as
// all do, so no wait is part of a cycle (invariant 10).
#include <algorithm>
#include <array>

#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

/// Blocks that have changed, with their latches.
struct Node::JointMerge {
    static constexpr std::size_t blocks_max = BlockLock::together_max;
    using Reading = PublicCopies::Reading;

    Node& node;
    Others others;
    Scratch room;  ///< a block each
    std::size_t count = 0;
    std::array<BlockId, blocks_max> blocks;
    /// The requests for blocks whose lock was not free here, and for the home's copy.
    std::array<std::optional<Reading>, blocks_max> readings;
    std::array<std::uint8_t, blocks_max> place;  ///< in `chased`, or none
    static constexpr std::uint8_t none = 0xff;
    static constexpr std::size_t few = 4;
    std::array<BlockLock::Chased, blocks_max> chased;
    std::size_t chased_count = 0;

    JointMerge(Node& of, Others who) noexcept : node(of), others(who), room(of.joint_scratch_) {}
    std::size_t latch(std::size_t from) noexcept;
    void set_out() noexcept;
    void read_homes() noexcept;
    void merge_what_was_got() noexcept;
    void merge_the_others() noexcept;
    void end(BlockId block) noexcept;
};

/// Merges some of the blocks at hand, from the one at `from` on; returns where to go on.
std::size_t Node::merge_together(std::size_t from, Others others) noexcept {
    JointMerge joint{*this, others};
    const std::size_t next = joint.latch(from);
    joint.set_out();
    joint.merge_what_was_got();
    joint.merge_the_others();
    return next;
}

// A block that stands in the list twice ends the batch: its latch is closed already.
std::size_t Node::JointMerge::latch(std::size_t from) noexcept {
    std::size_t at = from;
    const std::span work = node.release_.work();
    for (; at < work.size() && count < blocks_max; ++at) {
        BlockEntry& entry = node.entries_[work[at]];
        if (!entry.latch.try_lock()) {
            if (count > 0) break;
            entry.latch.lock();
        }
        if (node.begin_merge(at)) {
            blocks[count++] = work[at];
        } else {
            entry.latch.unlock();
        }
    }
    return at;
}

// A block that was merged with another node's bytes the last time will be again: its copy comes
// with the lock. So do those of a few where that is the same exchange: their bytes take less than
// one more.
void Node::JointMerge::set_out() noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        const BlockId block = blocks[i];
        place[i] = none;
        if (node.lock_.is_free_here(block)) continue;
        readings[i].emplace(node.copies_, block, room.get() + i * node.block_bytes());
        place[i] = static_cast<std::uint8_t>(chased_count);
        BlockLock::Chased& one = chased[chased_count++];
        one = node.lock_.begin(block);
        if (node.entries_[block].merging.meets_others) one.along = &*readings[i];
    }
    if (chased_count == 0) return;
    if (chased_count <= few)
        for (std::size_t i = 0; i < count; ++i)
            if (place[i] != none && node.copies_.records().in_one_exchange(chased[place[i]].at))
                chased[place[i]].along = &*readings[i];
    node.lock_.try_together(std::span{chased}.first(chased_count));
    read_homes();
}

// With their locks: the copies that nobody expected to be needed.
void Node::JointMerge::read_homes() noexcept {
    using Access = gas::Segment::Access;
    std::array<std::optional<std::array<Access, Reading::accesses>>, blocks_max> accesses;
    std::array<gas::Segment::List, blocks_max> lists;
    std::array<std::size_t, blocks_max> of;
    std::size_t needed = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (place[i] == none) continue;
        const auto& token = chased[place[i]].token;
        if (!token || node.has_bytes_of(*token, blocks[i]) || readings[i]->read_from(token->home))
            continue;
        accesses[needed].emplace(readings[i]->list());
        lists[needed] = {token->home, *accesses[needed]};
        of[needed++] = i;
    }
    if (needed == 0) return;
    gas::Segment::together(std::span{lists}.first(needed));
    for (std::size_t i = 0; i < needed; ++i) readings[of[i]]->made_at(lists[i].node);
}

// In the order they came in: blocks in a row are one notice.
void Node::JointMerge::merge_what_was_got() noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const BlockId block = blocks[i];
        LockToken token;
        if (place[i] != none && chased[place[i]].token) {
            node.merge_with_home(block, chased[place[i]].token, others, &*readings[i]);
        } else if (place[i] == none && node.lock_.try_lock_here(block, token)) {
            node.merge_locked(block, token, others);
        } else {
            blocks[kept] = block;
            place[kept++] = place[i];
            continue;
        }
        end(block);
    }
    count = kept;
}

// Another node holds their locks, or has taken one away from here meanwhile.
void Node::JointMerge::merge_the_others() noexcept {
    std::array<std::size_t, blocks_max> order;
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::sort(order.begin(), order.begin() + count,
              [&](std::size_t a, std::size_t b) { return blocks[a] < blocks[b]; });
    for (std::size_t at = 0; at < count; ++at) {
        const BlockId block = blocks[order[at]];
        const std::uint8_t chase = place[order[at]];
        if (chase == none) {
            node.merge(block, others);
        } else {
            node.merge_with_home(block, node.lock_.finish(chased[chase]), others);
        }
        end(block);
    }
}

void Node::JointMerge::end(BlockId block) noexcept {
    BlockEntry& entry = node.entries_[block];
    entry.state = node.take(entry, BlockEvent::merged).next;
    entry.latch.unlock();
}

}  // namespace hiroba::dsm
