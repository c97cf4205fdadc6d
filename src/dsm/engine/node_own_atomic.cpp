// SPDX-License-Identifier: BSD-3-Clause
// Role: atomics on what is this node's alone, without the runtime stack. They tell no other node
// anything, so they need no turn; the one of a node that asks is looked for in enter_atomic().
// Invariant: the program's vector registers are live while this runs (slow_path_entry.S). So the
// file is compiled for general registers alone, and calls nothing that is not compiled with it:
// what another translation unit holds of the same inline function may be linked in its place
// (test/house/check_vectors.py looks at what came of it).
#include <algorithm>

#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

#if defined(HIROBA_SANITIZED) || !defined(__OPTIMIZE__)
// What else is called may use vectors.
OwnAtomics Node::own_atomics() noexcept { return {}; }
void Node::let_next_go_by(BlockId, std::uintptr_t) noexcept {}
#else
static_assert(OwnAtomics::places == AtomicPasses::places);
OwnAtomics Node::own_atomics() noexcept {
    return {this,
            &Node::try_enter_own,
            &Node::try_leave_own,
            entries_.passes().table(),
            &Node::try_go_by,
            &Node::end_going_by};
}
#endif

namespace {
/// Whether atomics of the calling thread have gone by unnoted: the one that comes behind them looks
/// for what other nodes want.
[[gnu::always_inline]] inline bool has_gone_by() noexcept {
    const AtomicWindow* const window = own_atomic_window;
    return window != nullptr && window->made() != 0;
}
}  // namespace

[[gnu::flatten]] void Node::let_next_go_by(BlockId block, std::uintptr_t address) noexcept {
    may_let_go_by(block, address);
}

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
    // The node with the token gives no turns.
    if (thread == nullptr || !offset ||
        (debts_.board().is_turn_asked() && !guess_.quantum.has_token()))
        return false;
    const BlockId block = block_at(*offset);
    BlockEntry& entry = entries_[block];
    if (block_at(*offset + bytes - 1) != block) return false;
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
    may_let_go_by(block, reinterpret_cast<std::uintptr_t>(address));
    entry.latch.unlock();
    return true;
}

// Notes what has gone by. @return how many may do so next: as many as the thread makes in a short
// while, so that what other nodes want is looked for that often
[[gnu::always_inline]] inline std::uint32_t Node::settle_window(AtomicWindow& window,
                                                                bool is_held) noexcept {
    constexpr std::uint64_t while_ticks = 8'000, most = 64, least = 4;
    const std::uint64_t tick = __builtin_ia32_rdtsc(), passed = tick - window.given_tick;
    const std::uint32_t made = window.settle();
    window.given_tick = tick;
    if (made > 0) {
        statistics_.count_atomics_of(*this_thread_if_known(), made);
        if (is_held) {
            guess_.quantum.note_atomics_now(made);
            debts_.board().note_active(false);
        }
    }
    if (passed > while_ticks * most) return 0;
    const std::uint64_t next = std::min(while_ticks * (made + 1) / (passed + 1), most);
    return next < least ? 0 : static_cast<std::uint32_t>(next);
}

// With the latch, behind an atomic: whether the thread's next ones go by.
[[gnu::always_inline]] inline void Node::may_let_go_by(BlockId block,
                                                       std::uintptr_t address) noexcept {
    if (!entries_.passes().are_usable() || statistics_.has_places()) return;
    AtomicUse& use = entries_[block].atomics;
    const bool is_held = entries_[block].state == BlockState::held;
    if (options_.open_at_once) {
        open_to_atomics(block, is_held, address);
        return;
    }
    AtomicWindow* const window = own_atomic_window;
    if (window == nullptr) return;
    const std::uint32_t next = settle_window(*window, is_held);
    if (next == 0) return;
    if (use.noted < AtomicUse::noted_min) {
        ++use.noted;
        return;
    }
    if (!open_to_atomics(block, is_held, address)) return;
    window->given = next;
    window->left = static_cast<std::int32_t>(next);
}

// With the latch. A release that begins either finds the block on the list, or is noted here as one
// that has begun.
[[gnu::always_inline]] inline bool Node::open_to_atomics(BlockId block, bool is_held,
                                                         std::uintptr_t address) noexcept {
    AtomicUse& use = entries_[block].atomics;
    if (!use.is_open) {
        if (is_held && !held_passes_.put(block)) return false;
        use.is_open = true;
        std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with OwnReleases::begin()
        if (is_held) use.note_release(release_.numbers().begun());
    }
    entries_.passes().open(address);
    return true;
}

// As a trampoline does it.
bool Node::try_go_by(void* node, void* address) noexcept {
    Node& self = *static_cast<Node*>(node);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (!self.entries_.passes().enter(this_thread(), at)) return false;
    // As its window does for a program's thread: a fault on the page maps it again.
    thread_part().atomic_block = self.block_at(*self.map().offset_of(at)) + std::uint64_t{1};
    return true;
}

void Node::end_going_by(void* node) noexcept {
    thread_part().atomic_block = 0;
    static_cast<Node*>(node)->entries_.passes().leave(this_thread());
}

// As note_held_atomic(). False: nothing was noted, since another node wants a block and this is one
// in 16, which may let it go, or in vain, or the log of changes is of an older epoch.
[[gnu::always_inline]] inline bool Node::note_held_atomic_now(BlockId block, std::uint64_t offset,
                                                              std::size_t bytes) noexcept {
    AtomicUse& use = entries_[block].atomics;
    const std::uint64_t word = word_at(offset);
    const bool counts = use.row % 16 == 15;
    const std::size_t at = space_.offset_in_block(offset);
    const bool looks = counts || use.is_vain(at, word) || has_gone_by();
    if (looks && (debts_.board().is_block_wanted() || is_token_wanted())) return false;
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
    use.note_word(at, word);
    return true;
}

}  // namespace hiroba::dsm
