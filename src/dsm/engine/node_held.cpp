// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks on which this node makes atomics in a row: it keeps the lock, and publishes what
// they wrote once, when another node wants the block or at the next release of this one
// (docs/protocol.md#held).
// Invariant: while a block is held this node has its lock and is its home. Write tracking goes on,
// so that each release finds what was written there since, by atomics or otherwise.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/trace.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

namespace {
constexpr std::uint16_t apart_min = 32;    ///< of a row whose atomics lie far apart
constexpr std::uint8_t patience_max = 10;  ///< of doublings of row_min
}  // namespace

// With the block's latch and lock.
bool Node::may_hold(BlockId block, const LockToken& token, std::uint64_t now) noexcept {
    BlockEntry& entry = entries_[block];
    AtomicUse& use = entry.atomics;
    if (!options_.exclusive || token.home != self_ || token.read || use.vain) {
        use.row = use.apart = 0;
        return false;
    }
    if (!guess_.quantum.is_in_row(now)) {
        use.row = 0;
    } else if (use.row < UINT16_MAX) {
        ++use.row;
    }
    if (use.apart < UINT16_MAX) ++use.apart;
    const bool is_row = use.row >= options_.row_min << use.patience ||
                        use.apart >= apart_min << use.patience || guess_.quantum.has_token();
    return is_row && (entry.state == BlockState::writable || entry.state == BlockState::pinned) &&
           entry.pins == 0 && !entry.early && !entry.held_back && !entry.stale.pinned &&
           // Relaxed: a hint.
           entry.spin.waits.load(std::memory_order_relaxed) == 0;
}

// With the block's latch and lock. False: somebody wants it already.
bool Node::hold(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    entry.atomics.row = entry.atomics.apart = 0;
    // Before anybody can ask, as in make_exclusive().
    entry.state = take(entry, BlockEvent::repeated).next;
    if (lock_.keep(block)) {
        count(&PlaceCounters::held);
        guess_.quantum.note_held(block);
        trace("dsm.hold", block);
        return true;
    }
    share_again(block);
    return false;
}

// With the latch, behind an atomic.
void Node::note_held_atomic(BlockId block, std::uint64_t offset, std::size_t bytes) noexcept {
    AtomicUse& use = entries_[block].atomics;
    use.row = next_in_row(use.row);
    if (use.row % 16 == 0) {
        guess_.quantum.note_atomics(now_ns(), 16);
        debts_.board().note_active(false);
    }
    use.note_release(release_.numbers().begun());
    const std::size_t at = space_.offset_in_block(offset);
    if (races_.looks() && options_.atomics == MemoryOptions::Atomics::acq_rel)
        races_.note_atomic(block, at, private_copy(block) + at, copies_.own(block) + at, bytes);
    use.note_word(at, word_at(offset));
}

bool Node::is_to_let_go(const BlockEntry& entry) noexcept {
    if (!debts_.board().is_block_wanted() && !is_token_wanted()) return false;
    return entry.atomics.vain || !guess_.quantum.goes_on(now_ns());
}

// With nothing held: others get what they want, and what was released before they ask for it.
void Node::end_quantum() noexcept {
    const bool had_token = guess_.quantum.has_token();
    if (had_token) {
        guess_.quantum.lose_token();
        guess_.quantum.each_held([&](BlockId block) {
            BlockEntry& entry = entries_[block];
            if (!entry.latch.try_lock()) return;
            if (entry.state == BlockState::held) end_hold(block);
            entry.latch.unlock();
        });
    }
    serve_wanted();
    debts_.want_own();
    pay();
    if (!had_token) return;
    debts_.board().give_token();
    guess_.quantum.note_given(now_ns());
}

// Before an atomic, with nothing held.
void Node::let_token_go(BlockId block) noexcept {
    if (!is_token_wanted()) return;
    guess_.quantum.note_atomics(now_ns(), 0);  // one follows
    if (is_to_let_go(entries_[block])) end_quantum();
}

// Whether an atomic on it would take it away from a node that makes as many; a hint, without the
// latch.
bool Node::is_contested(BlockId block) noexcept {
    return guess_.quantum.is_contested(now_ns()) &&
           !keeps_lock(std::atomic_ref{entries_[block].state}.load(std::memory_order_relaxed)) &&
           !lock_.is_here(block);
}

// With the latch, all being closed there: what atomics without a call may have done to a held
// block.
void Node::note_passed(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (entry.state != BlockState::held) return;
    entry.atomics.note_release(release_.numbers().begun());
    if (races_.looks() && options_.atomics == MemoryOptions::Atomics::acq_rel)
        races_.note_atomics(block, private_copy(block), copies_.own(block));
}

// Closes all blocks, waits for the atomics under way with one fence for all, and notes what they
// have done.
void Node::close_held_passes() noexcept {
    if (!held_passes_.any()) return;
    std::array<BlockId, HeldPasses::most> closed;
    std::size_t count = 0;
    held_passes_.take([&](BlockId block) {
        BlockEntry& entry = entries_[block];
        const std::scoped_lock guard{entry.latch};
        if (entry.state != BlockState::held || !std::exchange(entry.atomics.is_open, false)) return;
        entries_.passes().close(program_range(block));
        closed[count++] = block;
    });
    if (count == 0) return;
    entries_.passes().await_all();
    for (std::size_t i = 0; i < count; ++i) {
        const std::scoped_lock guard{entries_[closed[i]].latch};
        note_passed(closed[i]);
    }
}

// A row that was short has to be longer the next time.
void Node::note_row(AtomicUse& use) const noexcept {
    const bool worth = use.row >= AtomicUse::worth_min;
    if (!worth)
        use.patience = std::min<std::uint8_t>(use.patience + 1, patience_max);
    else if (use.patience > 0)
        --use.patience;
    use.row = worth ? static_cast<std::uint16_t>(options_.row_min << use.patience) : 0;
}

// With the latch. What is published may hold plain writes, of which no release has told: it is
// owed, as an atomic's is.
void Node::end_hold(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    share_again(block);
    const LockToken token = lock_.held_token(block);
    const Timestamp wts = write_time(token.rts, min_wts());
    copies_.publish_changes(block, private_copy(block), {wts, owe_release(), races_.this_change()},
                            nullptr);
    note_row(entry.atomics);
    open_version(block, token, wts);
    trace("dsm.end_hold", block, wts.value);
}

}  // namespace hiroba::dsm
