// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/races/race_search.hpp"

#include <bit>
#include <cstring>
#include <mutex>

#include "base/thread_context.hpp"

namespace hiroba::dsm {

namespace {

/// With more nodes than this, only the one that merged last is asked what it has changed.
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

RaceSearch::RaceSearch(gas::Segment changes, const Around& around, const MemoryOptions& options)
    : around_(around),
      told_(options.race),
      changes_(std::move(changes)),
      change_log_(changes_, around.space.block_bytes(), 0),
      atomic_log_(changes_, around.space.block_bytes(),
                  around.entries.size() * ChangeLog::entry_bytes(around.space.block_bytes())),
      early_(around.news.epochs(), around.entries.size()) {}

std::size_t RaceSearch::bytes_of_changes(const AddressMap& map, const MemoryOptions& options) {
    if (options.race == MemoryOptions::Race::off) return ChangeLog::entry_bytes(0);
    // Two logs: of plain writes and of atomics.
    return 2 * BlockSpace::blocks_of(map) * ChangeLog::entry_bytes(map.shape().block_bytes);
}

void RaceSearch::on_race(RaceReport report, void* context) noexcept {
    report_context_ = context;
    report_.store(report, std::memory_order_release);  // pairs with report_race()
}

// --- where two versions meet ---------------------------------------------------------------------

void RaceSearch::look_for_races(BlockId block, const ThreeCopies& copies, NodeId other) noexcept {
    if (!looks()) return;
    const Scratch merged{around_.scratch};
    look_at_merge(block,
                  merge_block(copies.ours, copies.twin, copies.home, merged.get(),
                              around_.space.block_bytes()),
                  copies, other);
    look_before_merge(block, copies.ours, copies.twin);
}

bool RaceSearch::is_worth_telling(const MergeOutcome& outcome) const noexcept {
    return outcome.raced_bytes > 0 ||
           (told_ == MemoryOptions::Race::all && outcome.same_value_bytes > 0);
}

// A block may hold many variables; each run of raced bytes is a place of its own.
void RaceSearch::report_races(BlockId block, const ThreeCopies& copies, NodeId other) noexcept {
    if (!looks()) return;
    const auto bytes = static_cast<std::uint32_t>(around_.space.block_bytes());
    RacedRun run;
    for (unsigned runs = 0; runs < races_per_merge_max; ++runs) {
        run = next_race(copies.ours, copies.twin, copies.home, run.at + run.bytes, bytes);
        if (run.bytes == 0) return;
        if (!run.same_value || told_ == MemoryOptions::Race::all) {
            report_race(around_.space.program_range(block).address + run.at, run.bytes, other);
        }
    }
}

void RaceSearch::report_race(std::uintptr_t address, std::uint32_t bytes, NodeId other) noexcept {
    around_.statistics.count(&PlaceCounters::races);
    // Pairs with the release store in on_race().
    const RaceReport report = report_.load(std::memory_order_acquire);
    if (report != nullptr) {
        // A thread that publishes in the background has no place of its own.
        const SyncPlace own = this_thread().place;
        if (own.address == 0)
            this_thread().place.address = last_synchronized_.load(std::memory_order_relaxed);
        report(report_context_, address, bytes, around_.self, other);
        this_thread().place = own;
    }
    if (told_ == MemoryOptions::Race::abort) {
        die(1, "write-write race on %u bytes at 0x%lx with node %u (HIROBA_RACE=abort)", bytes,
            address, other.value);
    }
}

// --- where this node wrote on top of the other's bytes -------------------------------------------

void RaceSearch::note_known(BlockId block) noexcept {
    if (!looks()) return;
    const LastChange last = around_.copies.own_change(block);
    if (last.node != around_.self) atomics_behind_others_.fetch_add(1, std::memory_order_relaxed);
    if (epochs().is_known(last)) return;
    look_before_merge(block, around_.space.private_copy(block), around_.held_back.twin_of(block));
    epochs().raise(last.node, last.epoch + 1);
}

// The node whose atomic was read need not be the one whose writes that ordered: a third may have
// read theirs by an atomic, and written none. What came before has been acquired here, so the
// clocks tell of it. Every atomic looks: another thread's may have been the one that followed a
// node's, and not be over yet.
void RaceSearch::know_what_atomics_ordered() noexcept {
    const std::uint64_t behind = atomics_behind_others_.load(std::memory_order_relaxed);
    if (behind == atomics_known_.load(std::memory_order_relaxed)) return;
    look_at_early_blocks();
    around_.news.know_what_was_told();
    // Relaxed, also where another thread knows more: then somebody looks once too often.
    atomics_known_.store(behind, std::memory_order_relaxed);
}

// Tells races on bytes whose writers are not known: `twin` holds them, and only the nodes that
// changed them know. Bytes that they and this node changed are told where the program cannot have
// read here the flag that orders the two.
void RaceSearch::look_for_unordered(BlockId block, const std::byte* ours,
                                    const std::byte* twin) noexcept {
    if (!early_.is_still(around_.entries[block], block)) return;
    const EarlyBlock& early = early_[block];

    const std::size_t words = change_log_.words();
    ScratchPool& scratch = around_.scratch;
    const Scratch changed_buffer{scratch}, theirs_buffer{scratch}, all_buffer{scratch};
    ByteSet changed{changed_buffer.get(), words};
    ByteSet theirs{theirs_buffer.get(), words};
    ByteSet all{all_buffer.get(), words};
    const std::size_t block_bytes = around_.space.block_bytes();
    changed.clear();
    note_changes(ours, twin, block_bytes, changed.data());
    all.clear();
    const auto nodes = static_cast<std::uint32_t>(epochs().nodes());
    const bool ask_all = nodes <= asked_max;
    const auto read = [&](ChangeLog& log, NodeId node) {
        if (!may_ask(node, early.last, ask_all)) return false;
        return log.read(node, block, epochs().first_unknown(node), theirs_buffer.get());
    };
    const auto tell = [&](ChangeLog& log, auto&& may_tell) {
        for (std::uint32_t node = 0; node < nodes; ++node) {
            if (!read(log, NodeId{node})) continue;
            for_runs(changed, theirs, static_cast<std::uint32_t>(block_bytes),
                     [&](std::uint32_t at, std::uint32_t bytes) {
                         if (may_tell(at, bytes))
                             report_race(around_.space.program_range(block).address + at, bytes,
                                         NodeId{node});
                     });
        }
    };
    using Use = EarlyBlock::Use;
    const auto was_first = [&](std::uint32_t at, std::uint32_t bytes) {
        return early.use == Use::written && early.alone && early.at / 8 >= at / 8 &&
               early.at / 8 <= (at + bytes - 1) / 8;
    };
    // An atomic may have told the program what it read first.
    if (early.use == Use::written && early.alone) tell(atomic_log_, was_first);
    for (std::uint32_t node = 0; node < nodes; ++node)
        if (read(change_log_, NodeId{node})) all.add(theirs);
    if (!all.meets(changed)) return;

    const bool elsewhere = early_.are_seen_beside(block);
    const std::uint32_t read_first = early.use == Use::read ? early.at : 0;
    const bool one = ask_all && !elsewhere && early.use != Use::again &&
                     early.use != Use::retried && early.alone && all.is_one_variable(read_first);
    tell(change_log_, [&](auto at, auto bytes) { return one || was_first(at, bytes); });
}

bool RaceSearch::may_ask(NodeId node, LastChange last, bool all) const noexcept {
    return node != around_.self && (all || node == last.node);
}

void RaceSearch::note_own_changes(BlockId block, const std::byte* ours,
                                  const std::byte* twin) noexcept {
    look_before_merge(block, ours, twin);
    note_in_log(block, [&](std::uint64_t* noted) {
        if (noted != nullptr) note_changes(ours, twin, around_.space.block_bytes(), noted);
    });
}

// --- what the program's synchronizations tell ----------------------------------------------------

// Before more becomes known: what was written until now was written without knowing.
void RaceSearch::look_at_early_blocks() noexcept {
    if (!early_.any_listed()) return;
    EarlyBlocks::List blocks;
    const std::size_t count = early_.take_listed(blocks);
    for (std::size_t i = 0; i < count; ++i) {
        const BlockId block = blocks[i];
        BlockEntry& entry = around_.entries[block];
        const std::scoped_lock guard{entry.latch};
        const std::byte* const ours = around_.space.private_copy(block);
        const std::byte* const twin = around_.held_back.twin_of(block);
        if (entry.early && differs(ours, twin, around_.space.block_bytes()))
            look_for_unordered(block, ours, twin);
        if (early_.is_still(entry, block)) early_.list(block);
    }
}

void RaceSearch::acquire_known() noexcept {
    look_at_early_blocks();
    epochs().take_learned();
}

void RaceSearch::know_what_was_flushed() noexcept {
    if (!looks()) return;
    look_at_early_blocks();
    epochs().know_what_was_flushed();
    // A fault may have learned of a release before the program's first flush here.
    around_.news.know_what_was_told();
}

}  // namespace hiroba::dsm
