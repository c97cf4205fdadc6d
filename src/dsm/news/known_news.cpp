// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/known_news.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace hiroba::dsm {

KnownNews::KnownNews(NodeId self, std::uint32_t nodes, const MemoryOptions& options,
                     OwnReleases& releases, Statistics& statistics)
    : self_(self),
      releases_(releases),
      statistics_(statistics),
      epochs_(known_count(nodes, options), self),
      learned_(nodes),
      entries_(Signature::entries_for(options.notices_max)),
      index_(Signature::index_slots(options.notices_max)),
      signature_(options.notices_max, entries_.span(), index_.span()),
      sent_(nodes, 0),
      sent_releases_(nodes, 0),
      last_meeting_(told_again_max(options.notices_max)),
      clocks_(nodes) {}

// --- what is told --------------------------------------------------------------------------------

// The least of the values that the nodes `told` have; with no node named, of all peers'.
template <class Value>
Value KnownNews::least_of(const std::vector<Value>& sent,
                          std::span<const NodeId> told) const noexcept {
    Value least = ~Value{0};
    for (const NodeId peer : told) least = std::min(least, sent[peer.value]);
    for (std::uint32_t peer = 0; told.empty() && peer < sent.size(); ++peer) {
        if (NodeId{peer} != self_) least = std::min(least, sent[peer]);
    }
    return least;
}

void KnownNews::trim() noexcept {
    statistics_.count(&PlaceCounters::notices_dropped, signature_.trim(known_to_all_));
    show_min_wts();
}

// Stored only where it rises: the store costs what a latch costs, and a synchronization with
// nothing to say would make several.
void KnownNews::show_min_wts() noexcept {
    const std::uint64_t value = signature_.min_wts().value;
    if (min_wts_.load(std::memory_order_relaxed) == value) return;  // changes under the latch only
    min_wts_.store(value, std::memory_order_seq_cst);               // pairs with min_wts()
}

// Notices that `skip` wrote itself are no news to it.
/// @param again  notices that are told ahead of the others, though not learned since
std::size_t KnownNews::encode_since(NewsSequence since, NodeId skip, NewsHeader header,
                                    NewsSequence clocks_since, std::span<const Notice> again,
                                    MutableBytes out) noexcept {
    trim();
    header.min_wts = signature_.min_wts().value;
    std::size_t at = sizeof header;
    const std::uint32_t flushes = program_flushes() ? 1 : 0;
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) {
        const Clock& clock = clocks_[node];
        if (clock.changed <= clocks_since) continue;
        const ClockNews told{node, flushes, clock.told, clock.needed, clock.epoch};
        std::memcpy(out.data() + at, &told, sizeof told);
        at += sizeof told;
        ++header.clocks;
    }
    const auto tell = [&](const Notice& notice) {
        if (notice.node == skip) return;
        HIROBA_INVARIANT(at + sizeof notice <= out.size(), "news of %lu bytes into %lu",
                         at + sizeof notice, out.size());
        std::memcpy(out.data() + at, &notice, sizeof notice);
        at += sizeof notice;
        ++header.count;
    };
    for (const Notice& notice : again) tell(notice);
    signature_.since(since, tell);
    std::memcpy(out.data(), &header, sizeof header);
    return at + epochs_.encode(out.subspan(at));
}

std::size_t KnownNews::encode_for(NodeId peer, MutableBytes out) noexcept {
    // Acquire: pairs with note_untold(). What this thread must tell was added by itself, or by
    // others before this thread took a role after them.
    if (!has_untold_.load(std::memory_order_acquire)) {
        const NewsHeader nothing{min_wts().value, 0, 0, 0, 0, 0};
        std::memcpy(out.data(), &nothing, sizeof nothing);
        return sizeof nothing + epochs_.encode(out.subspan(sizeof nothing));
    }
    const std::scoped_lock guard{latch_};
    const NewsSequence since = sent_[peer.value];
    const std::size_t bytes = encode_since(since, peer, {}, since, {}, out);
    sent_[peer.value] = signature_.last_sequence();
    sent_releases_[peer.value] = releases_.completed();
    return bytes;
}

std::size_t KnownNews::encode_for_anyone(MutableBytes out) noexcept {
    const std::scoped_lock guard{latch_};
    // Relaxed: a meeting that another thread counts meanwhile has changed nothing yet, or is over.
    const std::uint64_t meetings = meetings_.load(std::memory_order_relaxed);
    LastMeeting& last = last_meeting_;
    const bool is_last = last.number == meetings;
    const NewsHeader header{0, 0, 0, 0, meetings, is_last ? last.left_out.value : 0};
    const std::span<const Notice> again{last.notices.data(), is_last ? last.count : 0};
    if (!again.empty()) ask_soon();  // then they need not be told again and again
    return encode_since(known_to_all_, told_by_nobody, header, known_before_, again, out);
}

void KnownNews::raise_known_release(ReleaseNumber release) noexcept {
    ReleaseNumber known = known_release_.load(std::memory_order_relaxed);
    // Release: pairs with all_know().
    while (known < release &&
           !known_release_.compare_exchange_weak(known, release, std::memory_order_release)) {
    }
}

void KnownNews::everyone_knows_through(std::span<const NodeId> told) noexcept {
    const std::uint64_t meetings = meetings_.load(std::memory_order_relaxed) + 1;
    if (!has_untold_.load(std::memory_order_acquire)) {        // as in encode_for()
        meetings_.store(meetings, std::memory_order_release);  // pairs with least_needed()
        return;
    }
    const std::scoped_lock guard{latch_};
    meetings_.store(meetings, std::memory_order_release);
    known_before_ = known_to_all_;
    keep_for_who_is_at(meetings);
    const NewsSequence known = least_of(sent_, told);
    // A notice that another thread here has made since the last encode_for() went to nobody; nor
    // did one that another thread has learned since, by a lock or a flush or because it came upon
    // its bytes: peers need not have it.
    bool untold = learned_aside_ > known || clocks_[self_.value].changed > known;
    signature_.since(known, [&](const Notice& n) { untold |= n.node == self_; });
    known_to_all_ = untold ? known : signature_.last_sequence();
    for (NewsSequence& sent : sent_) sent = std::max(sent, known_to_all_);
    if (untold) return;
    raise_known_release(least_of(sent_releases_, told));
    signature_.forget_all();
    show_min_wts();
    has_untold_.store(false, std::memory_order_release);  // pairs with encode_for()
}

// With the latch.
void KnownNews::keep_for_who_is_at(std::uint64_t meeting) noexcept {
    LastMeeting& last = last_meeting_;
    last.count = 0;
    last.left_out = {};
    last.up_to = signature_.last_sequence();
    last.number = meeting;
    signature_.since(known_before_, [&](const Notice& notice) {
        if (last.count < last.notices.size()) {
            last.notices[last.count++] = notice;
        } else {
            last.left_out = newest_wts_;
        }
    });
    if (last.left_out != Timestamp{}) last.count = 0;
}

void KnownNews::everyone_knows(ReleaseNumber release, NewsSequence sequence) noexcept {
    raise_known_release(release);
    const std::scoped_lock guard{latch_};
    known_to_all_ = std::max(known_to_all_, sequence);
    for (NewsSequence& sent : sent_) sent = std::max(sent, known_to_all_);
    if (sequence < last_meeting_.up_to) return;
    last_meeting_.count = 0;
    last_meeting_.left_out = {};
}

// News go in one piece: who has acquired a release knows all that was known here when it ended.
void KnownNews::know_acquired(ReleaseNumber acquired) noexcept {
    raise_known_release(acquired);
    if (acquired >= asking_.last.release)
        everyone_knows(asking_.last.release, asking_.last.sequence);
    const std::scoped_lock guard{latch_};
    asking_.last = asking_.ended;
}

NewsSequence KnownNews::last_sequence() noexcept {
    const std::scoped_lock guard{latch_};
    return signature_.last_sequence();
}

bool KnownNews::tells_of(Stamp stamp) noexcept {
    const std::scoped_lock guard{latch_};
    return clocks_[stamp.writer().value].told >= stamp.release();
}

// --- what this node has done ---------------------------------------------------------------------

void KnownNews::add(const Notice& notice) noexcept {
    signature_.add(notice, known_to_all_);
    newest_wts_ = std::max(newest_wts_, notice.wts);
}

void KnownNews::add_own(const Notice& notice) noexcept {
    const std::scoped_lock guard{latch_};
    add(notice);
    note_untold();
}

void KnownNews::end_release(const Made& made, NeededReleases& needs,
                            const AcquiredReleases& acquired) noexcept {
    const ReleaseNumber release = releases_.begun();
    const std::scoped_lock guard{latch_};
    for (const Notice& notice : made.notices) add(notice);
    const bool owed = releases_.is_owed(release);
    if (made.had_work || owed) epochs_.end_epoch();  // atomics are noted, too
    Clock& own = clocks_[self_.value];
    own.told = release;
    own.needed = std::max(own.needed, release);  // others' bytes may need the next one
    own.epoch = epochs_.this_change().epoch;
    // No node has heard of a release that made nothing and that no atomic owes.
    if (!made.notices.empty() || owed) {
        own.changed = signature_.mark();
        note_untold();
    }
    if (needs.any()) take_over(needs, acquired);
    asking_.ended = {release, signature_.last_sequence()};
    // News for whoever comes, by a lock say, tell of all that not all know.
    constexpr NewsSequence many = 64;
    if (asking_.ended.sequence > known_to_all_ + many)
        asking_.wanted.store(true, std::memory_order_relaxed);
    releases_.end(release);
    if (!made.notices.empty()) trim();
}

void KnownNews::take_over(NeededReleases& needs, const AcquiredReleases& acquired) noexcept {
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) {
        Clock& clock = clocks_[node];
        if (needs.of(node) > clock.needed) {
            clock.needed = needs.of(node);
            clock.changed = signature_.mark();
        }
        // An acquire that ends now finds this under the latch.
        if (node != self_.value && clock.needed > acquired.of(node))
            needs_open_.store(true, std::memory_order_release);  // pairs with needs_open()
    }
    needs.taken();
}

// --- what others have done -----------------------------------------------------------------------

std::size_t KnownNews::join(std::span<Notice> taken, std::span<ReleaseNumber> applied) noexcept {
    const std::scoped_lock guard{latch_};
    const LearnedNews::Taken news = learned_.take(
        taken,
        [&](std::uint32_t node, const Clock& clock) { join_clocks(node, clock, applied[node]); });
    for (const Notice& notice : taken.first(news.notices)) add(notice);
    if (news.notices > 0) note_untold();
    if (news.aside) learned_aside_ = signature_.last_sequence();
    signature_.raise_min_wts(news.min_wts);
    show_min_wts();
    return news.notices;
}

void KnownNews::join_clocks(std::uint32_t node, const Clock& learned,
                            ReleaseNumber& applied) noexcept {
    Clock& clock = clocks_[node];
    // This node knows its own releases best, but not what others' bytes need of them.
    const bool own = node == self_.value;
    if ((!own && clock.told < learned.told) || clock.needed < learned.needed) {
        if (!own) clock.told = std::max(clock.told, learned.told);
        clock.needed = std::max(clock.needed, learned.needed);
        clock.epoch = std::max(clock.epoch, learned.epoch);
        clock.changed = signature_.mark();
        note_untold();
    }
    applied = clock.told;
}

Stamp KnownNews::open_need(std::span<const ReleaseNumber> applied,
                           ReleaseNumber& shown_up_to) noexcept {
    const std::scoped_lock guard{latch_};
    for (std::uint32_t node = 0; node < clocks_.size(); ++node) {
        if (node == self_.value || clocks_[node].needed <= applied[node]) continue;
        return {NodeId{node}, clocks_[node].needed};
    }
    needs_open_.store(false, std::memory_order_release);  // pairs with needs_open()
    shown_up_to = releases_.completed();                  // changes under the latch
    return {};
}

void KnownNews::know_what_was_told() noexcept {
    const std::scoped_lock guard{latch_};
    for (std::uint32_t node = 0; node < epochs_.nodes(); ++node)
        epochs_.raise(NodeId{node}, clocks_[node].epoch);
}

}  // namespace hiroba::dsm
