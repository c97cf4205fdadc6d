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
        guess_.quantum.holds_back())
        return false;
    const BlockId block = block_at(*offset);
    BlockEntry& entry = entries_[block];
    if (block_at(*offset + bytes - 1) != block) return false;
    if (may_enter_announced(*thread, block, *offset)) return true;
    if (!entry.latch.try_lock()) return false;
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
    if (thread_part(thread).atomic_block == 0) return false;  // guarded without this node
    const auto block = static_cast<BlockId>(thread_part(thread).atomic_block - 1);
    BlockEntry& entry = entries_[block];
    if (thread_part(thread).is_announced())
        return may_leave_announced(
            thread, block, *map().offset_of(reinterpret_cast<std::uintptr_t>(address)), bytes);
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

// False: it has to be made with the latch.
[[gnu::always_inline]] inline bool Node::may_enter_announced(ThreadContext& thread, BlockId block,
                                                             std::uint64_t offset) noexcept {
    BlockEntry& entry = entries_[block];
    const std::atomic<bool>& is_open = entry.atomics.is_open;
    if (!is_open.load(std::memory_order_relaxed) || !entries_.announced().enter(thread, block))
        return false;
    // Behind enter(): who has closed it meanwhile has found the announcement, or is found here.
    if (!is_open.load(std::memory_order_relaxed) ||
        entry.writes.faults.load(std::memory_order_relaxed) != 0) {
        entries_.announced().leave(thread);
        return false;
    }
    end_going_first(thread);
    // As in enter_own(). Looked at first: the entry is to stay in the caches of all cores.
    const std::atomic_ref as_taken{entry.trial.as_taken};
    if (as_taken.load(std::memory_order_relaxed)) as_taken.store(false, std::memory_order_relaxed);
    ThreadPart& part = thread_part(thread);
    part.atomic_block = (block + std::uint64_t{1}) | ThreadPart::announced;
    // Else the word is left alone: read and then written it goes from core to core twice.
    part.knows_word = debts_.board().is_block_wanted();
    if (part.knows_word) part.atomic_word = word_at(offset);
    return true;
}

// The state stays as it is until leave().
[[gnu::always_inline]] inline bool Node::may_leave_announced(ThreadContext& thread, BlockId block,
                                                             std::uint64_t offset,
                                                             std::size_t bytes) noexcept {
    BlockEntry& entry = entries_[block];
    if (statistics_.has_places() || entry.atomics.turn_asked.load(std::memory_order_relaxed) != 0)
        return false;
    if (entry.state == BlockState::held && !note_announced_now(thread, block, offset, bytes))
        return false;
    statistics_.count_atomic_of(thread);
    thread_part(thread).atomic_block = 0;
    entries_.announced().leave(thread);
    return true;
}

// As note_held_atomic_now(), by a thread among others. Hints are left out: what the last one left,
// and how long the row is beyond what makes it worth it.
[[gnu::always_inline]] inline bool Node::note_announced_now(ThreadContext& thread, BlockId block,
                                                            std::uint64_t offset,
                                                            std::size_t bytes) noexcept {
    ThreadPart& part = thread_part(thread);
    const bool counts = part.announced_atomics % 16 == 15;
    if ((counts || (part.knows_word && word_at(offset) == part.atomic_word)) &&
        debts_.board().is_block_wanted())
        return false;
    const std::size_t at = space_.offset_in_block(offset);
    if (races_.looks() && options_.atomics == MemoryOptions::Atomics::acq_rel &&
        !races_.note_atomic_among_others(block, at, private_copy(block) + at,
                                         copies_.own(block) + at, bytes))
        return false;
    ++part.announced_atomics;
    if (counts) {
        guess_.quantum.note_atomics_now(16);
        debts_.board().note_active(false);
    }
    entries_[block].atomics.note_among_others();
    entries_[block].atomics.note_release(release_.numbers().begun());
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
        guess_.quantum.note_atomics_now(16);
        debts_.board().note_active(false);
    }
    use.row = next_in_row(use.row);
    use.note_release(release_.numbers().begun());
    use.vain = word == use.word;
    use.word = word;
    return true;
}

}  // namespace hiroba::dsm
