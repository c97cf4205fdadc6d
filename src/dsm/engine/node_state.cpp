// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node's next steps depend on, shown part by part to explorers (test/sim/dsm).
// Invariant: complete but for what the caller leaves out on purpose: other blocks, the rest of each
// block, counters. A member that is added to Node and decides anything belongs here.
#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

namespace {

/// Values without their padding, one after the other.
class Shown {
public:
    Shown(void (*visit)(void*, Bytes), void* context) noexcept : visit_(visit), context_(context) {}
    template <class... Values>
    void values(const Values&... each) noexcept {
        (bytes(&each, sizeof each), ...);
    }
    void bytes(const void* at, std::size_t count) noexcept {
        visit_(context_, {static_cast<const std::byte*>(at), count});
    }
    void notice(const Notice& n) noexcept { values(n.wts, n.rts, n.block, n.node, n.count); }

private:
    void (*visit_)(void*, Bytes);
    void* context_;
};

// Read while no thread runs: latches are shown as they stand, not taken.
void show(Shown& shown, const BlockEntry& e) noexcept {
    shown.values(e.write_faults, e.latch, e.state, e.queued, e.unmerged, e.guards_stack, e.watched,
                 e.brought, e.held_back, e.held_back_listed, e.stale_pinned, e.held_back_by,
                 e.write_guess, e.pins, e.early, e.merging.meets_others, e.stale_aside,
                 e.run.length, e.run.uses, e.follow.uses, e.follow.brought, e.renewals,
                 e.knows_writer, e.rts, e.notice_node, e.notice_wts, e.notice_rts, e.atomics.at_ns,
                 e.trial, e.exclusive_since, e.atomics.word, e.atomics.vain, e.atomics.turn_asked);
}

}  // namespace

void Node::show_state(std::span<const BlockId> blocks, std::size_t block_bytes,
                      void (*visit)(void*, Bytes), void* context) noexcept {
    Shown shown{visit, context};
    for (const BlockId block : blocks) {
        show(shown, entries_[block]);
        shown.values(moved_.shown(block));
        shown.bytes(private_copy(block), block_bytes);
        shown.bytes(copies_.own(block), block_bytes);
        if (entries_[block].held_back) shown.bytes(twin_of(block), block_bytes);
        shown.values(reinterpret_cast<const BlockRecord*>(records_.local())[block]);
        if (!looks_for_races()) continue;
        const EarlyBlock& early = early_[block];
        shown.values(early.use, early.alone, early.at, early.last.node, early.last.epoch);
        for (ChangeLog* const log : {&change_log_, &atomic_log_})
            shown.bytes(log->shown(block).data(), log->shown(block).size());
    }
    for (const std::atomic<Epoch>& epoch : known_) shown.values(epoch.load());
    for (const SeenEarly& seen : seen_early_)
        shown.values(seen.epoch, seen.block, seen.in_more_blocks);
    shown.bytes(reinterpret_cast<const std::byte*>(pending_known_.data()),
                pending_known_.size() * sizeof(Epoch));
    shown.bytes(reinterpret_cast<const std::byte*>(flushed_known_.data()),
                flushed_known_.size() * sizeof(Epoch));
    const bool atomics_known = atomics_behind_others_.load() == atomics_known_.load();
    shown.values(this_change().epoch, early_latch_, early_count_, atomics_known, program_flushes_);
    shown.values(read_ahead_, signature_latch_, known_to_all_, min_wts_, signature_.min_wts(),
                 signature_.last_sequence());
    for (const Signature::Entry& entry : signature_.entries()) {
        shown.notice(entry.notice);
        shown.values(entry.sequence, entry.live);
    }
    shown.bytes(reinterpret_cast<const std::byte*>(sent_.data()),
                sent_.size() * sizeof(NewsSequence));
    shown.bytes(reinterpret_cast<const std::byte*>(sent_releases_.data()),
                sent_releases_.size() * sizeof(ReleaseNumber));
    shown.values(pending_latch_, pending_count_, pending_min_wts_, has_pending_, expired_to_);
    for (std::size_t i = 0; i < pending_count_; ++i) shown.notice(pending_[i]);
    const std::size_t unmerged = unmerged_count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < made_count_; ++i) shown.notice(made_[i]);
    shown.values(release_, work_count_, reported_count_, made_count_, release_wts_, unmerged_latch_,
                 unmerged);
    shown.bytes(work_.data(), work_count_ * sizeof(BlockId));
    shown.bytes(unmerged_.data(), unmerged * sizeof(BlockId));
    shown.values(acquire_, kept_.first, kept_.end, taken_count_);
    for (std::size_t i = 0; i < taken_count_; ++i) shown.notice(taken_[i]);
    shown.bytes(invalidation_.blocks.data(), invalidation_.blocks.size() * sizeof(BlockId));
    for (const LeaseQueue::Lease& lease : leases_.all()) shown.values(lease.until, lease.block);
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) {
        shown.values(clocks_[node], pending_clocks_[node], acquired_[node], inaccessible_[node],
                     applied_[node], made_needs_[node]);
    }
    shown.values(needs_open_, begun_, completed_, debt_, made_needs_any_, unfinished_, shown_up_to_,
                 show_unasked_, board_latch_, pull_latch_, made_count_, held_back_count_,
                 stale_pinned_count_, known_release_, wanted_runs_);
    for (std::size_t i = 0; i < made_count_; ++i) shown.notice(made_[i]);
    shown.bytes(held_back_.data(), held_back_count_ * sizeof(BlockId));
    shown.bytes(stale_pinned_.data(), stale_pinned_count_ * sizeof(BlockId));
    shown.bytes(pulled_.data(), pulled_.size());
    board_.show(visit, context);
    const Bytes flushed = flush_object_.shown();
    shown.bytes(flushed.data(), flushed.size());
    shown.values(flushed_last_, flush_seen_, flush_sequence_, flush_latch_, flush_object_.told(),
                 vain_flushes_);
    scratch_.each_used([&](const std::byte* buffer) { shown.bytes(buffer, block_bytes); });
    joint_scratch_.each_used([&](const std::byte* buffer) {
        for (std::size_t i = 0; i < together_max; ++i)
            shown.bytes(buffer + i * block_bytes_, block_bytes);
    });
}

}  // namespace hiroba::dsm
