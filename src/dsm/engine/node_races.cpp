// SPDX-License-Identifier: BSD-3-Clause
// Role: finds writes of two nodes to the same bytes that no synchronization of the program orders
// (docs/protocol.md#unordered). Two ways: where two versions meet, by comparing; and where a copy
// with the other's bytes was here before this node wrote, by what the other has noted.
// Invariant: nothing is told of a program that orders its writes, be it by a flag that it only
// loads and stores: what might have been one keeps this node silent.
#include <bit>
#include <cstring>
#include <mutex>

#include "base/thread_context.hpp"
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

namespace {

/// Of more nodes only the one that merged last is asked what it has changed.
constexpr std::size_t asked_max = 16;

/// Bits of bytes, a word for each line of 64.
class ByteSet {
public:
    ByteSet(std::byte* at, std::size_t words) noexcept
        : at_(reinterpret_cast<std::uint64_t*>(at)), words_(words) {}
    void clear() noexcept { std::memset(at_, 0, words_ * sizeof *at_); }
    std::uint64_t* data() noexcept { return at_; }
    void add(const ByteSet& other) noexcept {
        for (std::size_t i = 0; i < words_; ++i) at_[i] |= other.at_[i];
    }
    bool meets(const ByteSet& other) const noexcept {
        for (std::size_t i = 0; i < words_; ++i)
            if ((at_[i] & other.at_[i]) != 0) return true;
        return false;
    }
    bool has(std::uint32_t byte) const noexcept { return (at_[byte / 64] >> byte % 64 & 1) != 0; }

    /// Whether all of it may be one variable: in an aligned group of 4 bytes, or of 8 whose
    /// second half is not what was read first.
    bool is_one_variable(std::uint32_t read_first) const noexcept {
        std::size_t used = words_;
        for (std::size_t i = 0; i < words_; ++i) {
            if (at_[i] == 0) continue;
            if (used != words_) return false;
            used = i;
        }
        if (used == words_) return false;
        const unsigned first = static_cast<unsigned>(std::countr_zero(at_[used]));
        const unsigned last = 63 - static_cast<unsigned>(std::countl_zero(at_[used]));
        if (first / 4 == last / 4) return true;
        return first / 8 == last / 8 && read_first % 8 < 4;
    }

private:
    std::uint64_t* at_;
    std::size_t words_;
};

/// Calls visit(at, bytes) for each run of bytes in both sets; less than a word of 4 apart is one.
template <class Visit>
void for_runs(const ByteSet& a, const ByteSet& b, std::uint32_t bytes, Visit&& visit) noexcept {
    constexpr std::uint32_t gap_max = 4;
    std::uint32_t at = 0, end = 0;
    for (std::uint32_t i = 0; i < bytes; ++i) {
        if (!a.has(i) || !b.has(i)) continue;
        if (end > 0 && i >= end + gap_max) {
            visit(at, end - at);
            end = 0;
        }
        if (end == 0) at = i;
        end = i + 1;
    }
    if (end > 0) visit(at, end - at);
}

}  // namespace

// --- where two versions meet ---------------------------------------------------------------------

// With the block's latch; the twin is about to be replaced.
void Node::look_for_races(BlockId block, const ThreeCopies& copies, NodeId other) noexcept {
    if (!looks_for_races()) return;
    const Scratch merged{scratch_};
    const MergeOutcome outcome =
        merge_block(copies.ours, copies.twin, copies.home, merged.get(), block_bytes_);
    if (is_worth_telling(outcome)) report_races(block, copies, other);
    if (entries_[block].early) look_for_unordered(block, copies.ours, copies.twin);
}

bool Node::is_worth_telling(const MergeOutcome& outcome) const noexcept {
    return outcome.raced_bytes > 0 ||
           (options_.race == MemoryOptions::Race::all && outcome.same_value_bytes > 0);
}

// A block may hold many variables; each run of raced bytes is a place of its own.
void Node::report_races(BlockId block, const ThreeCopies& copies, NodeId other) noexcept {
    if (!looks_for_races()) return;
    const auto bytes = static_cast<std::uint32_t>(block_bytes_);
    RacedRun run;
    for (unsigned runs = 0; runs < races_per_merge_max; ++runs) {
        run = next_race(copies.ours, copies.twin, copies.home, run.at + run.bytes, bytes);
        if (run.bytes == 0) return;
        if (!run.same_value || options_.race == MemoryOptions::Race::all) {
            report_race(program_range(block).address + run.at, run.bytes, other);
        }
    }
}

void Node::report_race(std::uintptr_t address, std::uint32_t bytes, NodeId other) noexcept {
    count(&PlaceCounters::races);
    // Pairs with the release store in on_race().
    const RaceReport report = race_report_.load(std::memory_order_acquire);
    if (report != nullptr) {
        // A thread that publishes in the background has no place of its own.
        const SyncPlace own = this_thread().place;
        if (own.address == 0)
            this_thread().place.address = last_synchronized_.load(std::memory_order_relaxed);
        report(race_context_, address, bytes, self_, other);
        this_thread().place = own;
    }
    if (options_.race == MemoryOptions::Race::abort) {
        die(1, "write-write race on %u bytes at 0x%lx with node %u (HIROBA_RACE=abort)", bytes,
            address, other.value);
    }
}

// --- where this node wrote on top of the other's bytes -------------------------------------------

bool Node::is_known(LastChange change) const noexcept {
    // Relaxed: a thread that has synchronized sees what it has learned.
    return change.node == self_ ||
           change.epoch < known_[change.node.value].load(std::memory_order_relaxed);
}

void Node::raise_known(NodeId node, Epoch epoch) noexcept {
    std::atomic<Epoch>& known = known_[node.value];
    Epoch before = known.load(std::memory_order_relaxed);
    while (before < epoch &&
           !known.compare_exchange_weak(before, epoch, std::memory_order_relaxed)) {
    }
}

// An atomic reads what the last one here has left, and so is synchronized with it. With the latch
// of the block: what came before that is taken over when the atomic is over.
void Node::note_known(BlockId block) noexcept {
    if (!looks_for_races()) return;
    const LastChange last = copies_.own_change(block);
    if (last.node != self_) atomics_behind_others_.fetch_add(1, std::memory_order_relaxed);
    if (is_known(last)) return;
    if (entries_[block].early) look_for_unordered(block, private_copy(block), twin_of(block));
    raise_known(last.node, last.epoch + 1);
}

// With nothing held. The node whose atomic was read need not be the one whose writes that ordered:
// a third may have read theirs by an atomic, and written none. What came before has been acquired
// here, so the clocks tell of it. Every atomic looks: another thread's may have been the one that
// followed a node's, and not be over yet.
void Node::know_what_atomics_ordered() noexcept {
    const std::uint64_t behind = atomics_behind_others_.load(std::memory_order_relaxed);
    if (behind == atomics_known_.load(std::memory_order_relaxed)) return;
    look_at_early_blocks();
    know_what_was_told();
    // Relaxed, also where another thread knows more: then somebody looks once too often.
    atomics_known_.store(behind, std::memory_order_relaxed);
}

// From every teller alike, and whether the program or its background flusher heard.
void Node::know_what_was_told() noexcept {
    const std::scoped_lock guard{signature_latch_};
    for (std::uint32_t node = 0; node < known_.size(); ++node)
        raise_known(NodeId{node}, clocks_[node].epoch);
}

// With the block's latch, its newest bytes being here. What was brought before and never shown, the
// program has not seen: it is no other version.
void Node::note_brought(BlockId block, LastChange last) noexcept {
    if (!looks_for_races()) return;
    BlockEntry& entry = entries_[block];
    const bool again = entry.early && !is_known(early_[block].last);
    const bool listed = entry.early;
    entry.early = !is_known(last);
    if (!entry.early) return;

    const std::scoped_lock guard{early_latch_};
    SeenEarly& seen = seen_early_[last.node.value];
    if (is_known({last.node, seen.epoch})) seen = {last.epoch, block, false};
    seen.epoch = std::max(seen.epoch, last.epoch);
    seen.in_more_blocks |= seen.block != block;
    using Use = EarlyBlock::Use;
    EarlyBlock& early = early_[block];
    const bool may_retry = early.alone && (early.use == Use::written || early.use == Use::retried);
    if (!listed || !entry.brought)
        early.use = !again ? Use::none : may_retry ? Use::retried : Use::again;
    early.alone = !is_seen_elsewhere(block);
    early.last = last;
    const std::size_t count = early_count_.load(std::memory_order_relaxed);  // under the latch
    if (listed || count == early_blocks_max) return;
    early_blocks_[count] = block;
    early_count_.store(count + 1, std::memory_order_relaxed);
}

// With the block's latch, in the fault that made it accessible or a later one. meets: the bytes
// came while a write waited, whatever other threads have read of them since.
void Node::note_first_access(BlockId block, std::uint64_t at, bool written, bool meets) noexcept {
    EarlyBlock& early = early_[block];
    using Use = EarlyBlock::Use;
    const auto offset = static_cast<std::uint32_t>(at);
    if (meets) early.use = Use::none;
    // Made stale before the program came to its write: the same fault once more.
    if (early.use == Use::retried)
        early.use = written && offset == early.at ? Use::written : Use::again;
    if (early.use != Use::none) return;
    early.use = written ? Use::written : Use::read;
    early.at = offset;
}

// Under early_latch_.
bool Node::is_seen_elsewhere(BlockId block) noexcept {
    for (std::uint32_t node = 0; node < seen_early_.size(); ++node) {
        const SeenEarly& seen = seen_early_[node];
        if (is_known({NodeId{node}, seen.epoch})) continue;
        if (seen.in_more_blocks || seen.block != block) return true;
    }
    return false;
}

// With the block's latch. Whose bytes `twin` holds only those who changed them know. What they
// changed, and this node too, is told where nothing that the program could have read here may
// have been the flag that orders the two.
void Node::look_for_unordered(BlockId block, const std::byte* ours,
                              const std::byte* twin) noexcept {
    BlockEntry& entry = entries_[block];
    const EarlyBlock& early = early_[block];
    entry.early = !is_known(early.last);
    if (!entry.early) return;

    const std::size_t words = change_log_.words();
    const Scratch changed_buffer{scratch_}, theirs_buffer{scratch_}, all_buffer{scratch_};
    ByteSet changed{changed_buffer.get(), words};
    ByteSet theirs{theirs_buffer.get(), words};
    ByteSet all{all_buffer.get(), words};
    changed.clear();
    note_changes(ours, twin, block_bytes_, changed.data());
    all.clear();
    const bool ask_all = known_.size() <= asked_max;
    const auto read = [&](ChangeLog& log, NodeId node) {
        if (!may_ask(node, early.last, ask_all)) return false;
        // Relaxed: as is_known() has it.
        const Epoch first = known_[node.value].load(std::memory_order_relaxed);
        return log.read(node, block, first, theirs_buffer.get());
    };
    const auto tell = [&](ChangeLog& log, auto&& may_tell) {
        for (std::uint32_t node = 0; node < known_.size(); ++node) {
            if (!read(log, NodeId{node})) continue;
            for_runs(changed, theirs, static_cast<std::uint32_t>(block_bytes_),
                     [&](std::uint32_t at, std::uint32_t bytes) {
                         if (may_tell(at, bytes))
                             report_race(program_range(block).address + at, bytes, NodeId{node});
                     });
        }
    };
    using Use = EarlyBlock::Use;
    const auto was_first = [&](std::uint32_t at, std::uint32_t bytes) {
        return early.use == Use::written && early.alone && early.at / 8 >= at / 8 &&
               early.at / 8 <= (at + bytes - 1) / 8;
    };
    // What the program first read may have been told by an atomic.
    if (early.use == Use::written && early.alone) tell(atomic_log_, was_first);
    for (std::uint32_t node = 0; node < known_.size(); ++node)
        if (read(change_log_, NodeId{node})) all.add(theirs);
    if (!all.meets(changed)) return;

    bool elsewhere;
    {
        const std::scoped_lock guard{early_latch_};
        elsewhere = is_seen_elsewhere(block);
    }
    const std::uint32_t read_first = early.use == Use::read ? early.at : 0;
    const bool one = ask_all && !elsewhere && early.use != Use::again &&
                     early.use != Use::retried && early.alone && all.is_one_variable(read_first);
    tell(change_log_, [&](auto at, auto bytes) { return one || was_first(at, bytes); });
}

bool Node::may_ask(NodeId node, LastChange last, bool all) const noexcept {
    return node != self_ && (all || node == last.node);
}

// --- what the program's synchronizations tell ----------------------------------------------------

// Before more becomes known: what was written until now was written without knowing.
void Node::look_at_early_blocks() noexcept {
    if (early_count_.load(std::memory_order_relaxed) == 0) return;
    std::array<BlockId, early_blocks_max> blocks;
    std::size_t count;
    {
        const std::scoped_lock guard{early_latch_};
        count = early_count_.load(std::memory_order_relaxed);  // under the latch
        std::memcpy(blocks.data(), early_blocks_.data(), count * sizeof(BlockId));
        early_count_.store(0, std::memory_order_relaxed);
    }
    for (std::size_t i = 0; i < count; ++i) {
        BlockEntry& entry = entries_[blocks[i]];
        const std::scoped_lock guard{entry.latch};
        const std::byte* const ours = private_copy(blocks[i]);
        const std::byte* const twin = twin_of(blocks[i]);
        if (entry.early && differs(ours, twin, block_bytes_))
            look_for_unordered(blocks[i], ours, twin);
        entry.early = entry.early && !is_known(early_[blocks[i]].last);
        if (!entry.early) continue;
        const std::scoped_lock list{early_latch_};
        const std::size_t kept = early_count_.load(std::memory_order_relaxed);  // under the latch
        if (kept == early_blocks_max) continue;
        early_blocks_[kept] = blocks[i];
        early_count_.store(kept + 1, std::memory_order_relaxed);
    }
}

// Perhaps in a handler, with the latch of a block: looking at blocks has to wait for acquire().
void Node::learn_known(Bytes news) noexcept {
    if (!looks_for_races()) return;
    const Bytes told = news.last(known_.size() * sizeof(Epoch));
    for (std::uint32_t node = 0; node < known_.size(); ++node) {
        Epoch epoch;
        std::memcpy(&epoch, told.data() + node * sizeof epoch, sizeof epoch);
        if (is_known({NodeId{node}, epoch - 1})) continue;
        const std::scoped_lock guard{pending_latch_};
        pending_known_[node] = std::max(pending_known_[node], epoch);
        has_pending_known_.store(true, std::memory_order_release);  // pairs with acquire()
    }
}

void Node::acquire_known() noexcept {
    look_at_early_blocks();
    const std::scoped_lock guard{pending_latch_};
    has_pending_known_.store(false, std::memory_order_relaxed);
    for (std::uint32_t node = 0; node < known_.size(); ++node)
        raise_known(NodeId{node}, pending_known_[node]);
}

std::size_t Node::encode_known(MutableBytes out) noexcept {
    for (std::uint32_t node = 0; node < known_.size(); ++node) {
        // Acquire: pairs with end_epoch(). What this thread has released is merged.
        const Epoch epoch = NodeId{node} == self_ ? epoch_.load(std::memory_order_acquire)
                                                  : known_[node].load(std::memory_order_relaxed);
        std::memcpy(out.data() + node * sizeof epoch, &epoch, sizeof epoch);
    }
    return known_.size() * sizeof(Epoch);
}

// --- flushes -------------------------------------------------------------------------------------

// Under flush_latch_. What lies in the flush object was put there by flushes of the program, and
// each background flusher hands on what it finds, though its own program need not know of it.
void Node::remember_flushed(Bytes news) noexcept {
    const Bytes told = news.last(flushed_known_.size() * sizeof(Epoch));
    for (std::size_t node = 0; node < flushed_known_.size(); ++node) {
        Epoch epoch;
        std::memcpy(&epoch, told.data() + node * sizeof epoch, sizeof epoch);
        flushed_known_[node] = std::max(flushed_known_[node], epoch);
    }
}

void Node::keep_flushed(MutableBytes news) noexcept {
    remember_flushed(news);
    if (!flushed_known_.empty())
        std::memcpy(news.last(flushed_known_.size() * sizeof(Epoch)).data(), flushed_known_.data(),
                    flushed_known_.size() * sizeof(Epoch));
}

void Node::know_what_was_flushed() noexcept {
    if (!looks_for_races()) return;
    look_at_early_blocks();
    for (std::uint32_t node = 0; node < known_.size(); ++node)
        raise_known(NodeId{node}, flushed_known_[node]);
    // A fault may have learned of a release before the program's first flush here.
    know_what_was_told();
}

}  // namespace hiroba::dsm
