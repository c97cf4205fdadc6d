// SPDX-License-Identifier: BSD-3-Clause
// Role: atomic read-modify-writes in the critical section of a block: this node becomes home, so
// the operation is local whatever it is (the paper, section 3.2 (4)).
// Invariant: between enter and leave the caller's thread holds the block's latch and lock, and the
// block is mapped writable.
#include <cstring>

#include "base/clock.hpp"
#include "base/thread_context.hpp"
#include "base/turns.hpp"
#include "dsm/engine/node.hpp"
#include "dsm/thread_part.hpp"

namespace hiroba::dsm {

namespace {
// Longer than that no atomic waits for a write of its own node, which may wait for another node.
constexpr std::uint64_t write_fault_max_ns = 50'000'000;
constexpr unsigned tries_giving_way = 2;
// How often it then looks for the write itself, some microseconds and a few turns of the processor.
constexpr unsigned looks_for_write = 150;

/// Room for the home's copy, which comes with the block's lock where that costs no exchange more.
struct CopyAlong {
    CopyAlong(ScratchPool& pool, PublicCopies& copies, BlockId block) noexcept
        : room(pool), reading(copies, block, room.get()) {}
    Scratch room;
    PublicCopies::Reading reading;
};
}  // namespace

// A write whose page has to come first takes far longer than on one host. An atomic of another
// thread of this node that came behind it there (single nowait, then a reduction) would come before
// it here, and be lost without a word: nobody compares two threads of one node. So the fault goes
// first, and the store that it was for. With nothing held, as in pull(): whoever is in a fault
// waits for nobody of this node.
void Node::let_write_faults_end(BlockId block, std::uint64_t offset) noexcept {
    const std::atomic<std::uint16_t>& faults = entries_[block].writes.faults;
    // Acquire: pairs with the end of on_fault().
    if (faults.load(std::memory_order_acquire) == 0) return;
    on_runtime_stack([&] {
        const std::uint64_t begin = now_ns();
        Backoff backoff;
        const unsigned looks_max = turns_of_this_thread() != nullptr ? 1 : looks_for_write;
        std::uint64_t before = word_at(offset);
        // The page may be taken away again before the store is made: then it faults once more.
        for (unsigned looks = 0; looks < looks_max && now_ns() - begin < write_fault_max_ns;) {
            if (faults.load(std::memory_order_acquire) != 0) {  // as above
                pay();
                endpoint_.poll();
                looks = 0;
                before = word_at(offset);
            } else if (word_at(offset) == before) {
                ++looks;
            } else {
                return;
            }
            backoff.pause();
        }
    });
}

bool Node::enter_atomic(void* address, std::size_t bytes) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto offset = map().offset_of(at);
    if (!offset) return false;
    const BlockId block = block_at(*offset);
    HIROBA_INVARIANT(block_at(*offset + bytes - 1) == block,
                     "atomic of %lu bytes at 0x%lx crosses a block", bytes, at);
    end_going_first(this_thread());
    let_writes(block);
    AtomicQuantum& quantum = guess_.quantum;
    let_token_go(block);
    if (quantum.has_met() && is_contested(block)) await_token(now_ns());
    const bool in_turn = !quantum.has_token() && await_turn(block, *offset, give_turn(block));
    const AtomicQuantum::SlowPart under_way{quantum};
    const std::uint64_t begin = now_ns();
    std::optional<CopyAlong> along;
    if (joins()) along.emplace(scratch_, copies_, block);
    for (unsigned tries = 0;; ++tries) {
        let_write_faults_end(block, *offset);
        Stamp missing;
        if (try_enter_atomic(block, tries < tries_giving_way, begin,
                             along ? &along->reading : nullptr, missing)) {
            if (tries > 0 || entries_[block].atomics.came) {
                quantum.note_met(now_ns());
                record(RecordKind::atomic, at, tries, now_ns() - begin);
            }
            return true;
        }
        if (missing.is_none()) continue;
        debts_.board().note_active(true);
        ask_turn_after(tries, missing.writer(), block, true);
        catch_up_with(missing, in_turn && tries == 0 ? Writer::in_turn : Writer::anywhere);
    }
}

// An exclusive block needs no lock. With its latch. What the atomic writes the next one of another
// node must find, whatever releases tell.
bool Node::enter_own(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    entry.trial.as_taken = false;
    entry.state = take(entry, BlockEvent::atomic).next;
    thread_part().atomic_block = block + std::uint64_t{1};
    return true;
}

// What came with the lock, now or the last time, is of the version that the token names or of
// another: then the home is asked once more.
Stamp Node::bring_for_atomic(BlockId block, const LockToken& token,
                             const PublicCopies::Reading* along) noexcept {
    const auto came = along != nullptr ? along->read_from(token.home) : std::nullopt;
    if (!came || came->wts != token.wts)
        return install(block, token.home, BlockWork::rebase, token.wts);
    return put_in_place(block, token.home, along->bytes(), BlockWork::rebase,
                        {*came, block_bytes()});
}

// False: what came before the bytes must be acquired first, or, none, a write has faulted on the
// block meanwhile; nothing is held.
bool Node::try_enter_atomic(BlockId block, bool gives_way, std::uint64_t now,
                            PublicCopies::Reading* along, Stamp& missing) noexcept {
    BlockEntry& entry = entries_[block];
    const bool orders = options_.atomics == MemoryOptions::Atomics::acq_rel;
    entry.latch.lock();
    note_use(entry);
    missing = {};
    if (keeps_lock(entry.state)) return enter_own(block);
    const LockToken token = lock_.lock(block, along);
    const bool moves = token.home != self_ && token.wts != copies_.own_wts(block);
    entry.atomics.came = token.home != self_;
    // A write's fault waits for the latch: it brings what comes from elsewhere.
    const bool waits = gives_way && entry.writes.faults.load(std::memory_order_relaxed) > 0;
    if (moves && !waits) {
        missing = bring_for_atomic(block, token, along);
    } else if (entry.held_back) {
        missing = {self_, 0};
    } else if (orders && !may_show(copies_.own_stamp(block))) {
        missing = copies_.own_stamp(block);
    }
    if (waits || !missing.is_none()) {
        if (moves) {
            lock_.give_back(block, token);
        } else {
            lock_.unlock(block, token);
        }
        entry.latch.unlock();
        return false;
    }
    // What atomics alone write no release finds changed.
    if (may_be_exclusive(block, token)) {
        // A release that passes by the block from here on ends the epoch of what is noted with it.
        owe_release();
        if (make_exclusive(block)) return enter_own(block);
        // A release of another thread may have been told of a write there, and have passed by the
        // block while it was exclusive.
        put_on_unmerged(block);
    }
    if (may_hold(block, token, now) && hold(block)) return enter_own(block);
    const BlockState before = entry.state;
    const BlockStep next = must_stay(block) && settled(before)
                               ? take(entry, BlockEvent::pinned_fault)
                               : take(entry, BlockEvent::atomic);
    // The last change of the block may have been made to let this thread go on.
    races_.note_known(block);
    entry.state = next.next;
    thread_part().atomic_block = block + std::uint64_t{1};
    // Where it is writable already no call is made. The kernel may have dropped the mapping since,
    // or a release may have re-armed write tracking: then the access faults, and on_fault() maps
    // it.
    if (before == BlockState::writable || before == BlockState::pinned) return true;
    if (next.next == BlockState::pinned) engine_->keep(program_range(block));
    engine_->map(program_range(block), Access::write);
    if (!gives_way || entry.writes.faults.load(std::memory_order_relaxed) == 0) return true;
    // Likewise, while it was mapped. What was brought stays; this node is the home, and whatever
    // news tells of is older.
    entry.notice_wts = {};
    entry.rts = token.rts;
    entry.brought = false;
    thread_part().atomic_block = 0;
    lock_.unlock(block, token);
    entry.latch.unlock();
    return false;
}

// An atomic is a release, which is owed: whoever reads it has the node's next release made first.
// The one under way may have passed by what this thread wrote before.
Stamp Node::stamp_of_atomic(BlockId block) noexcept {
    if (options_.atomics == MemoryOptions::Atomics::relaxed) return copies_.own_stamp(block);
    return owe_release();
}

// With the latch, which it opens.
void Node::end_atomic(BlockEntry& entry) noexcept {
    entry.atomics.at_ns = now_ns();
    guess_.quantum.note_atomics(entry.atomics.at_ns, entry.atomics.vain ? 0 : 1);
    debts_.board().note_active(false);
    thread_part().atomic_block = 0;
    entry.latch.unlock();
    end_turn(entry);
}

// The version that an atomic has published, or several in a row. With the latch, and with the
// block's lock, which it opens.
void Node::open_version(BlockId block, const LockToken& token, Timestamp wts) noexcept {
    BlockEntry& entry = entries_[block];
    const Timestamp rts = wts.after(options_.lease);
    const Tried tried = try_version(entry, token, wts);
    entry.notice_wts = {};
    entry.rts = rts;
    entry.brought = false;
    lock_.unlock(block, {self_, wts, rts});
    add_own_notice(block, wts, tried == Tried::no ? rts : Timestamp{});
    // Behind the notice: a release that begins from here on tells of it.
    if (tried == Tried::first) entry.trial.by = release_.numbers().begun() + 1;
}

void Node::leave_atomic(void* address, std::size_t bytes) noexcept {
    const std::uint64_t offset = *map().offset_of(reinterpret_cast<std::uintptr_t>(address));
    const BlockId block = block_at(offset);
    BlockEntry& entry = entries_[block];
    statistics_.count_atomic();
    if (entry.state == BlockState::exclusive) return end_atomic(entry);
    if (entry.state == BlockState::held) {
        note_held_atomic(block, offset, bytes);
        const bool lets_go = is_to_let_go(entry);
        if (lets_go)
            end_hold(block);
        else
            let_next_go_by(block, reinterpret_cast<std::uintptr_t>(address));
        end_atomic(entry);
        if (lets_go) end_quantum();
        return;
    }
    const LockToken token = lock_.held_token(block);
    if (token.home != self_) count(&PlaceCounters::home_migrations);
    // Every atomic is a version of its own: a peer that read this copy by an older notice, which
    // leaves no trace here, must find its version outdated.
    const Timestamp wts = write_time(token.rts, min_wts());
    // Others are told when the release that it owes is over.
    const std::size_t at = space_.offset_in_block(offset);
    const std::byte* const now = private_copy(block) + at;
    const std::uint64_t word = word_at(offset);
    entry.atomics.note_word(at, word);
    entry.atomics.vain &= std::memcmp(copies_.own(block) + at, now, bytes) == 0;
    if (races_.looks() && options_.atomics == MemoryOptions::Atomics::acq_rel)
        races_.note_atomic(block, at, now, copies_.own(block) + at, bytes);
    copies_.publish_part(block, at, now, bytes,
                         {wts, stamp_of_atomic(block), races_.this_change()});
    open_version(block, token, wts);
    end_atomic(entry);
    if (options_.atomics == MemoryOptions::Atomics::acq_rel) races_.know_what_atomics_ordered();
}

}  // namespace hiroba::dsm
