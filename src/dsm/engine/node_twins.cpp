// SPDX-License-Identifier: BSD-3-Clause
// Role: twins that are made at the first write: what is only read has one copy here
// (docs/decisions/twins-at-first-writes.md).
// Invariant: a block without a twin was never written or published by this node, and lies in a
// chunk whose pages nothing can write, neither the program nor the kernel. No other node reads its
// public copy: this node is not, and was not, its home.
#include <mutex>

#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

// With nothing held, for a run of misses that read. One thread seals a chunk; who comes meanwhile
// brings twins as well.
void Node::seal(BlockId block) noexcept {
    if (!sealed_.is_fresh(block)) return;
    const AddressRange range = range_of_chunk(block);
    if (range.bytes == 0 || !sealed_.begin_seal(block)) return;
    sealed_.end_seal(block, engine_->seal(range));
}

// Nothing: it is not memory in one piece, or a stack of this node's, or a file is mapped there.
AddressRange Node::range_of_chunk(BlockId block) const noexcept {
    const BlockId first = sealed_.first_with(block), last = first + sealed_.chunk_blocks() - 1;
    if (last >= entries_.size()) return {};
    const AddressRange begin = program_range(first), end = program_range(last);
    const std::size_t bytes = std::size_t{sealed_.chunk_blocks()} * block_bytes();
    if (begin.address == 0 || end.end() != begin.address + bytes) return {};
    if (is_pinned(offset_of(first)) || is_pinned(offset_of(last))) return {};
    const AddressRange whole{begin.address, bytes};
    return map().is_left_out(whole) ? AddressRange{} : whole;
}

// With nothing held. The block may be written from here on.
void Node::let_writes(BlockId block) noexcept {
    if (sealed_.lets_writes(block)) return;
    const RuntimeScope latches;
    sealed_.begin_open(block);
    const BlockId first = sealed_.first_with(block);
    for (BlockId each = first; each < first + sealed_.chunk_blocks(); ++each) {
        const std::scoped_lock guard{entries_[each].latch};
        make_twin(each);
    }
    lift_seal(first);
    sealed_.open(block);
}

// A file may have been mapped into the chunk since it was sealed.
void Node::lift_seal(BlockId first) noexcept {
    AddressRange run;
    const auto lift = [&] {
        if (run.bytes > 0) engine_->unseal(run);
        run = {};
    };
    for (BlockId each = first; each < first + sealed_.chunk_blocks(); ++each) {
        const AddressRange range = program_range(each);
        if (map().is_left_out(range)) {
            lift();
            continue;
        }
        if (run.bytes == 0) run.address = range.address;
        run.bytes += range.bytes;
    }
    lift();
}

// With the latch.
void Node::make_twin(BlockId block) noexcept {
    if (std::exchange(entries_[block].no_twin, false)) copies_.fill(block, private_copy(block));
}

// With the latch, of bytes that are about to be put in place. What was published here once may be
// read by other nodes, and what must be compared needs a twin.
bool Node::may_lack_twin(BlockId block) noexcept {
    const BlockEntry& entry = entries_[block];
    return sealed_.is_sealed(block) && !entry.held_back && !must_stay(block) &&
           (entry.no_twin || copies_.own_wts(block) == Timestamp{});
}

}  // namespace hiroba::dsm
