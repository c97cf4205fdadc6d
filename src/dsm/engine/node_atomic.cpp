// SPDX-License-Identifier: BSD-3-Clause
// Role: atomic read-modify-writes in the critical section of a block: this node becomes home, so
// the operation is local whatever it is (the paper, section 3.2 (4)).
// Invariant: between enter and leave the caller's thread holds the block's latch and lock, and the
// block is mapped writable.
#include <cstring>

#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

bool Node::enter_atomic(void* address, std::size_t bytes) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto offset = map_.offset_of(at);
    if (!offset) return false;
    const BlockId block = block_at(*offset);
    HIROBA_INVARIANT(block_at(*offset + bytes - 1) == block,
                     "atomic of %lu bytes at 0x%lx crosses a block", bytes, at);
    BlockEntry& entry = entries_[block];
    entry.latch.lock();
    const LockToken token = lock_.lock(block);
    const BlockState before = entry.state;
    const BlockStep next = is_pinned(*offset) && before == BlockState::invalid
                               ? step(before, BlockEvent::pinned_fault)
                               : step(before, BlockEvent::atomic);
    if (token.home != self_ && token.wts != copies_.own_wts(block)) {
        install(block, token.home, BlockWork::rebase, token.wts);
    }
    entry.state = next.next;
    this_thread().atomic_block = block + std::uint64_t{1};
    if (next.next == BlockState::pinned) engine_->keep(program_range(block));
    // Also where it is writable already: the kernel may have dropped the mapping.
    engine_->map(program_range(block), Access::write);
    return true;
}

void Node::leave_atomic(void* address, std::size_t bytes) noexcept {
    const std::uint64_t offset = *map_.offset_of(reinterpret_cast<std::uintptr_t>(address));
    const BlockId block = block_at(offset);
    BlockEntry& entry = entries_[block];
    const LockToken token = lock_.held_token(block);
    count(&PlaceCounters::atomics);
    if (token.home != self_) count(&PlaceCounters::home_migrations);
    // Every atomic is a version of its own: a peer that read this copy by an older notice, which
    // leaves no trace here, must find its version outdated.
    const Timestamp wts = write_time(token.rts, min_wts());
    const Timestamp rts = wts.after(options_.lease);
    copies_.publish_part(block, offset & (block_bytes_ - 1), private_memory_.at(offset), bytes,
                         wts);
    lock_.unlock(block, {self_, wts, rts});
    entry.notice_wts = {};
    set_lease(block, rts);
    add_own_notice(block, wts, rts);
    this_thread().atomic_block = 0;
    entry.latch.unlock();
}

}  // namespace hiroba::dsm
