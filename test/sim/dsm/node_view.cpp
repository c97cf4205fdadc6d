// SPDX-License-Identifier: BSD-3-Clause
// Invariant: show_state() is complete but for what the caller leaves out on purpose: other blocks,
// the rest of each block, counters. A member that is added to Node or to one of its rooms and
// decides anything belongs here.
#include "sim/dsm/node_view.hpp"

namespace hiroba::dsm {

/// Values without their padding, one after the other.
class NodeView::Shown {
public:
    Shown(void (*visit)(void*, Bytes), void* context) noexcept : visit_(visit), context_(context) {}
    template <class... Values>
    void values(const Values&... each) noexcept {
        std::array<std::byte, (sizeof each + ...)> all;
        std::byte* end = all.data();
        ((std::memcpy(end, &each, sizeof each), end += sizeof each), ...);
        bytes(all.data(), all.size());
    }
    void bytes(const void* at, std::size_t count) noexcept {
        visit_(context_, {static_cast<const std::byte*>(at), count});
    }
    template <class Value>
    void all(const Value* at, std::size_t count) noexcept {
        bytes(at, count * sizeof(Value));
    }
    void notice(const Notice& n) noexcept { values(n.wts, n.rts, n.block, n.node, n.count); }
    void notices(const Notice* at, std::size_t count) noexcept {
        values(count);
        for (std::size_t i = 0; i < count; ++i) notice(at[i]);
    }
    auto visit() const noexcept { return visit_; }
    void* context() const noexcept { return context_; }

private:
    void (*visit_)(void*, Bytes);
    void* context_;
};

NodeView::RowCounts NodeView::rows() const noexcept {
    RowCounts counts{};
    for (unsigned state = 0; state < block_states; ++state) {
        for (unsigned event = 0; event < block_events; ++event) {
            counts[state][event] =
                node_.statistics_.rows_[state][event].load(std::memory_order_relaxed);
        }
    }
    return counts;
}

std::optional<NodeView::Block> NodeView::look_at(BlockId block) const noexcept {
    BlockEntry& entry = node_.entries_[block];
    if (!entry.latch.try_lock()) return std::nullopt;
    const bool acquiring = !node_.acquire_.try_lock();
    if (!acquiring) node_.acquire_.unlock();
    const bool releasing = !node_.release_.try_lock();
    if (!releasing) node_.release_.unlock();
    const Stamp stamp = node_.copies_.own_stamp(block);
    const Block view{entry.state,
                     entry.rts,
                     Timestamp{node_.acquire_.expired_to_.load()},
                     node_.moved_.is_marked(block),
                     acquiring,
                     releasing,
                     node_.may_show(stamp) || stamp.writer() == node_.self_,
                     node_.twin_of(block),
                     node_.copies_.record(block),
                     node_.private_copy(block),
                     node_.copies_.own(block)};
    entry.latch.unlock();
    return view;
}

void NodeView::show_state(std::span<const BlockId> blocks, std::size_t block_bytes,
                          void (*visit)(void*, Bytes), void* context) const noexcept {
    Shown shown{visit, context};
    for (const BlockId block : blocks) show_block(shown, block, block_bytes);
    show_races(shown);
    show_news(shown);
    show_release(shown);
    show_acquire(shown);
    show_others(shown);
    node_.scratch_.each_used([&](const std::byte* buffer) { shown.bytes(buffer, block_bytes); });
    node_.joint_scratch_.each_used([&](const std::byte* buffer) {
        for (std::size_t i = 0; i < Node::together_max; ++i)
            shown.bytes(buffer + i * node_.block_bytes(), block_bytes);
    });
}

// Read while no thread runs: latches are shown as they stand, not taken.
void NodeView::show_block(Shown& shown, BlockId block, std::size_t block_bytes) const noexcept {
    const BlockEntry& e = node_.entries_[block];
    shown.values(e.writes.faults, e.latch, e.state, e.queued, e.unmerged, e.guards_stack, e.watched,
                 e.brought, e.held_back, e.no_twin, node_.sealed_.shown(block), e.withheld.listed,
                 e.stale.pinned, e.withheld.by, e.writes.guess, e.pins, e.early,
                 e.merging.meets_others, e.merging.watched, e.merging.patience, e.merging.rewritten,
                 e.stale.aside, e.run.length, e.run.uses, e.follow.uses, e.follow.brought,
                 e.run.renewals, e.knows_writer, e.rts, e.notice_node, e.notice_wts, e.notice_rts,
                 e.atomics.at_ns, e.trial, e.atomics.word, e.atomics.vain, e.atomics.turn_asked,
                 e.atomics.row, e.atomics.apart, e.atomics.is_open, e.atomics.noted,
                 e.atomics.patience, e.atomics.release, e.spin.waits, e.spin.in_vain);
    shown.values(node_.moved_.shown(block));
    shown.bytes(node_.private_copy(block), block_bytes);
    shown.bytes(node_.copies_.own(block), block_bytes);
    if (e.held_back) shown.bytes(node_.twin_of(block), block_bytes);
    // What has changed since former versions decides what is carried where memory is not mapped,
    // and nothing else here: simulated nodes read whole copies.
    const BlockRecord& record = node_.copies_.record(block);
    shown.bytes(reinterpret_cast<const std::byte*>(&record),
                node_.options_.carried_max > 0 ? sizeof record : offsetof(BlockRecord, copy_since));
    if (!node_.races_.looks()) return;
    const EarlyBlock& early = node_.races_.early_[block];
    shown.values(early.use, early.alone, early.at, early.last.node, early.last.epoch);
    for (ChangeLog* const log : {&node_.races_.change_log_, &node_.races_.atomic_log_})
        shown.bytes(log->shown(block).data(), log->shown(block).size());
}

void NodeView::show_races(Shown& shown) const noexcept {
    const RaceSearch& races = node_.races_;
    for (const EarlyBlocks::Seen& seen : races.early_.seen_)
        shown.values(seen.epoch, seen.block, seen.in_more_blocks);
    const bool atomics_known = races.atomics_behind_others_.load() == races.atomics_known_.load();
    shown.values(races.early_.latch_, races.early_.count_, atomics_known);

    const KnownEpochs& epochs = node_.news_.epochs();
    for (const std::atomic<Epoch>& epoch : epochs.known_) shown.values(epoch.load());
    shown.all(epochs.learned_.data(), epochs.learned_.size());
    shown.all(epochs.flushed_.data(), epochs.flushed_.size());
    shown.values(epochs.this_change().epoch, epochs.learned_latch_, epochs.has_learned_);
}

void NodeView::show_news(Shown& shown) const noexcept {
    KnownNews& news = node_.news_;
    shown.values(news.program_flushes_, news.latch_, news.known_to_all_, news.learned_aside_,
                 news.has_untold_, news.min_wts_, news.signature_.min_wts(),
                 news.signature_.last_sequence(), news.needs_open_, news.known_release_);
    if (node_.options_.asks_every != MemoryOptions::never_asks)
        shown.values(news.asking_.wanted, news.asking_.from, news.asking_.last.release,
                     news.asking_.last.sequence, news.asking_.ended.sequence);
    for (const Signature::Entry& entry : news.signature_.entries()) {
        shown.notice(entry.notice);
        shown.values(entry.sequence, entry.live);
    }
    KnownNews::LastMeeting& last = news.last_meeting_;
    shown.values(news.known_before_, news.newest_wts_, last.left_out, last.up_to, last.number,
                 news.meetings_);
    shown.notices(last.notices.data(), last.count);
    shown.all(news.sent_.data(), news.sent_.size());
    shown.all(news.sent_releases_.data(), news.sent_releases_.size());
    shown.all(news.clocks_.data(), news.clocks_.size());

    LearnedNews& learned = news.learned_;
    shown.values(learned.latch_, learned.min_wts_, learned.aside_, learned.any_);
    shown.notices(learned.notices_.data(), learned.count_);
    shown.all(learned.clocks_.data(), learned.clocks_.size());
}

void NodeView::show_release(Shown& shown) const noexcept {
    ReleaseUnderWay& release = node_.release_;
    UnmergedBlocks& unmerged = release.unmerged_;
    const std::size_t unmerged_count = unmerged.count_.load(std::memory_order_relaxed);
    shown.values(release.role_, release.work_count_, release.reported_count_, release.wts_,
                 unmerged.latch_, unmerged_count);
    shown.notices(release.made_.data(), release.made_count_);
    shown.all(release.work_.data(), release.work_count_);
    shown.all(unmerged.blocks_.data(), unmerged_count);
    shown.values(release.numbers_.begun_, release.numbers_.completed_, release.numbers_.debt_,
                 release.needed_.any_);
    shown.all(release.needed_.needs_.data(), release.needed_.needs_.size());
}

void NodeView::show_acquire(Shown& shown) const noexcept {
    AcquireUnderWay& acquire = node_.acquire_;
    shown.values(acquire.role_, acquire.expired_to_, acquire.unfinished_, acquire.put_off_count_);
    shown.notices(acquire.taken_.data(), acquire.taken_count_);
    shown.all(acquire.invalidation_.blocks().data(), acquire.invalidation_.blocks().size());
    shown.all(acquire.put_off_.data(), acquire.put_off_count_);
    shown.all(acquire.applied_.data(), acquire.applied_.size());
    shown.all(acquire.acquired_.acquired_.data(), acquire.acquired_.acquired_.size());
    shown.all(acquire.acquired_.inaccessible_.data(), acquire.acquired_.inaccessible_.size());
    HeldBack& held_back = node_.held_back_;
    shown.values(held_back.latch_, held_back.count_, held_back.shown_up_to_);
    shown.all(held_back.blocks_.data(), held_back.count_);
    for (const LeaseQueue::Lease& lease : node_.leases_.all())
        shown.values(lease.until, lease.block);
}

void NodeView::show_others(Shown& shown) const noexcept {
    Debts& debts = node_.debts_;
    node_.guess_.read_ahead.each_run([&](std::uint64_t run) { shown.values(run); });
    shown.values(node_.guess_.wanted.runs_, debts.unasked_, debts.askers_, debts.board_latch_,
                 debts.read_latch_);
    shown.bytes(debts.read_.data(), debts.read_.size());
    debts.board_.show(shown.visit(), shown.context());
    const CameLines& came = node_.copies_.came_;
    shown.values(came.latch_);
    for (const CarriedLines& each : came.slots_)
        if (each.wts != 0) shown.bytes(reinterpret_cast<const std::byte*>(&each), sizeof each);
    Flushes& flushes = node_.flushes_;
    const Bytes flushed = flushes.object_.shown();
    shown.bytes(flushed.data(), flushed.size());
    shown.values(flushes.seen_, flushes.sequence_, flushes.latch_, flushes.object_.told(),
                 flushes.in_vain_);
}

}  // namespace hiroba::dsm
