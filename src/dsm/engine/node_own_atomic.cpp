// SPDX-License-Identifier: BSD-3-Clause
// Role: atomics on what is this node's alone, without the runtime stack. They tell no other node
// anything, so they need no turn; the one of a node that asks is looked for in enter_atomic().
// Invariant: the program's vector registers are live while this runs (slow_path_entry.S). So the
// file is compiled for general registers alone, and calls nothing that is not compiled with it:
// what another translation unit holds of the same inline function may be linked in its place
// (test/house/check_vectors.py looks at what came of it).
#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

#if defined(HIROBA_SANITIZED) || !defined(__OPTIMIZE__)
// What else is called may use vectors.
OwnAtomics Node::own_atomics() noexcept { return {}; }
#else
OwnAtomics Node::own_atomics() noexcept {
    return {this, &Node::try_enter_own, &Node::try_leave_own};
}
#endif

[[gnu::flatten]] bool Node::try_enter_own(void* node, void* address, std::size_t bytes) noexcept {
    return static_cast<Node*>(node)->may_enter_own(address, bytes);
}

[[gnu::flatten]] bool Node::try_leave_own(void* node, void* address, std::size_t bytes) noexcept {
    return static_cast<Node*>(node)->may_leave_own(*this_thread_if_known(), address, bytes);
}

[[gnu::always_inline]] inline bool Node::may_enter_own(void* address, std::size_t bytes) noexcept {
    static_assert(step(BlockState::exclusive, BlockEvent::atomic).next == BlockState::exclusive &&
                  step(BlockState::held, BlockEvent::atomic).next == BlockState::held);
    ThreadContext* const thread = this_thread_if_known();
    const auto offset = map().offset_of(reinterpret_cast<std::uintptr_t>(address));
    if (thread == nullptr || !offset || debts_.board().is_turn_asked() ||
        debts_.quantum().holds_back())
        return false;
    const BlockId block = block_at(*offset);
    BlockEntry& entry = entries_[block];
    if (block_at(*offset + bytes - 1) != block || !entry.latch.try_lock()) return false;
    // Relaxed: as in try_enter_atomic(). A write of this node goes first.
    if (!keeps_lock(entry.state) || entry.watched ||
        entry.writes.faults.load(std::memory_order_relaxed) != 0) {
        entry.latch.unlock();
        return false;
    }
    end_going_first(*thread);
    statistics_.count_row(entry, BlockEvent::atomic);
    entry.trial.as_taken = false;  // as in enter_own()
    thread_part(*thread).atomic_block = block + std::uint64_t{1};
    return true;
}

[[gnu::always_inline]] inline bool Node::may_leave_own(ThreadContext& thread, void* address,
                                                       std::size_t bytes) noexcept {
    const auto block = static_cast<BlockId>(thread_part(thread).atomic_block - 1);
    BlockEntry& entry = entries_[block];
    if (!keeps_lock(entry.state) || statistics_.has_places() ||
        // Relaxed: as in end_turn().
        entry.atomics.turn_asked.load(std::memory_order_relaxed) != 0)
        return false;
    if (entry.state == BlockState::held) {
        const auto offset = *map().offset_of(reinterpret_cast<std::uintptr_t>(address));
        if (!note_held_atomic_now(block, offset, bytes)) return false;
    }
    thread_part(thread).atomic_block = 0;
    statistics_.count_atomic_of(thread);
    entry.latch.unlock();
    return true;
}

// As note_held_atomic(). False: nothing was noted, since another node wants a block and this is one
// in 16, which may let it go, or in vain, or the log of changes is of an older epoch.
[[gnu::always_inline]] inline bool Node::note_held_atomic_now(BlockId block, std::uint64_t offset,
                                                              std::size_t bytes) noexcept {
    AtomicUse& use = entries_[block].atomics;
    const std::uint64_t word = word_at(offset);
    const bool counts = use.row % 16 == 15;
    if ((counts || word == use.word) && debts_.board().is_block_wanted()) return false;
    const std::size_t at = space_.offset_in_block(offset);
    if (races_.looks() && options_.atomics == MemoryOptions::Atomics::acq_rel &&
        !races_.note_atomic_now(block, at, private_copy(block) + at, copies_.own(block) + at,
                                bytes))
        return false;
    if (counts) {
        debts_.quantum().note_atomics_now(16);
        debts_.board().note_active(false);
    }
    use.row = next_in_row(use.row);
    use.release = release_.numbers().begun();
    use.vain = word == use.word;
    use.word = word;
    return true;
}

}  // namespace hiroba::dsm
