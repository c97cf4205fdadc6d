// SPDX-License-Identifier: BSD-3-Clause
// Role: what this node knows of writes and releases, its own and others', and what of that it has
// told each peer: the signature, the clock of each node, and the epochs that go with them.
// Invariant: another thread's news have all of a release of this node or nothing. A notice is
// dropped only when each peer has it, or min_wts has been raised to cover it. The latch here is the
// innermost but for those of learned news and epochs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/counts/statistics.hpp"
#include "dsm/news/known_epochs.hpp"
#include "dsm/news/learned_news.hpp"
#include "dsm/news/own_releases.hpp"
#include "dsm/news/releases_of_others.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe where nothing else is said.
class KnownNews {
public:
    KnownNews(NodeId self, std::uint32_t nodes, const MemoryOptions& options, OwnReleases& releases,
              Statistics& statistics);

    /// The number of nodes of which news say what is known of them.
    static std::size_t known_count(std::uint32_t nodes, const MemoryOptions& options) noexcept {
        return options.race == MemoryOptions::Race::off ? 0 : nodes;
    }
    static std::size_t bytes_max(std::uint32_t nodes, const MemoryOptions& options) noexcept {
        const std::size_t notices = options.notices_max + told_again_max(options.notices_max);
        return bytes_of_news(nodes, notices, known_count(nodes, options)) + options.carried_max;
    }
    KnownEpochs& epochs() noexcept { return epochs_; }
    const KnownEpochs& epochs() const noexcept { return epochs_; }
    /// Whether the program flushes, here or elsewhere. A hint: a thread that reads an old value is
    /// silent about a race a little later.
    bool program_flushes() const noexcept {
        return program_flushes_.load(std::memory_order_relaxed);
    }
    /// The program flushes here. What was acquired before its first flush a flag may have ordered,
    /// too: that flush, which looks for races, is not to take it for unordered.
    void note_own_flush() noexcept {
        // Relaxed: of two first flushes each makes all of it known.
        if (own_flush_.load(std::memory_order_relaxed)) return;
        note_program_flushes();
        know_what_was_told();
        own_flush_.store(true, std::memory_order_relaxed);
    }
    void note_program_flushes() noexcept {
        if (!program_flushes()) program_flushes_.store(true, std::memory_order_relaxed);
    }

    Timestamp min_wts() const noexcept {
        return Timestamp{min_wts_.load(std::memory_order_seq_cst)};
    }
    /// News that have come and are not joined yet.
    LearnedNews& learned() noexcept { return learned_; }
    const LearnedNews& learned() const noexcept { return learned_; }
    /// Encodes news that `peer` may not know; from then on `peer` is taken to know them.
    std::size_t encode_for(NodeId peer, MutableBytes out) noexcept;
    /// Encodes news that some node may not know. A node that takes them while it is still at the
    /// last meeting, by a program thread beside a barrier say, learns what was told there, too: the
    /// notices where they are few, else what covers their writes.
    std::size_t encode_for_anyone(MutableBytes out) noexcept;
    /// What covers all writes that `news` tell of or leave out. Nodes take part in all meetings
    /// alike, and none is over for any node before each has acquired what the one before told: so
    /// what the last left out is all that may be missing here.
    Timestamp least_needed(const NewsHeader& news) const noexcept {
        const bool lacks = news.meetings > meetings_.load(std::memory_order_acquire);
        return Timestamp{lacks ? std::max(news.min_wts, news.left_out_wts) : news.min_wts};
    }
    /// A meeting of all nodes is over for this one, which has acquired what it told: all nodes have
    /// what all of `told` (none: all peers) were sent. What was sent need not have been received:
    /// a peer may take a lock, with the news that lie there, long before it looks at the message of
    /// a barrier it has not passed.
    void everyone_knows_through(std::span<const NodeId> told) noexcept;
    /// All nodes know this node's news up to `sequence`, and so what its releases up to `release`
    /// have told of.
    void everyone_knows(ReleaseNumber release, NewsSequence sequence) noexcept;
    /// Whether all nodes know what this node's releases up to `release` have told of. Where they do
    /// not, a release asks what they have acquired.
    bool all_know(ReleaseNumber release) noexcept {
        // Acquire: pairs with raise_known_release().
        if (release <= known_release_.load(std::memory_order_acquire)) return true;
        ask_soon();
        return false;
    }
    /// Has one of the next releases ask what all have acquired.
    void ask_soon() noexcept { asking_.wanted.store(true, std::memory_order_relaxed); }
    /// In the release role.
    /// @param every  behind how many releases they are asked again
    /// @param acquired_by_all()  up to which of this node's releases all others have acquired them
    template <class AcquiredByAll>
    void ask_if_wanted(ReleaseNumber every, AcquiredByAll&& acquired_by_all) noexcept {
        // Relaxed: a hint.
        if (!asking_.wanted.load(std::memory_order_relaxed) || releases_.begun() < asking_.from)
            return;
        asking_.wanted.store(false, std::memory_order_relaxed);
        asking_.from = releases_.begun() + every;
        know_acquired(acquired_by_all());
    }
    NewsSequence last_sequence() noexcept;
    bool tells_of(Stamp stamp) noexcept;

    /// Adds the notice of one block that this node has merged by an atomic.
    void add_own(const Notice& notice) noexcept;
    struct Made {
        std::span<const Notice> notices;
        bool had_work;  ///< there were blocks to look at
    };
    /// The end of this node's release under way, in its role, all in one piece.
    /// @param needs  of other nodes' releases, what its bytes were read from; taken over
    void end_release(const Made& made, NeededReleases& needs,
                     const AcquiredReleases& acquired) noexcept;

    /// Joins what was learned (causality through a third node needs it): what is joined this node
    /// tells others. In the acquire role.
    /// @param taken    gets the notices, to be applied to blocks
    /// @param applied  gets, per node, which of its releases they and those before tell of
    /// Returns how many notices.
    std::size_t join(std::span<Notice> taken, std::span<ReleaseNumber> applied) noexcept;
    /// Whether `stamp`'s release is told of by what was joined or came.
    bool has_heard_of(Stamp stamp) noexcept { return tells_of(stamp) || learned_.tells_of(stamp); }
    /// A release that bytes published here were read from and that is not among `applied`; none:
    /// all are, and what releases up to `shown_up_to` hold back may be shown.
    Stamp open_need(std::span<const ReleaseNumber> applied, ReleaseNumber& shown_up_to) noexcept;
    /// Whether something needed is not acquired.
    bool needs_open() const noexcept {
        return needs_open_.load(std::memory_order_acquire);  // pairs with end_release()
    }
    /// The program is synchronized with all that was joined. From every teller alike, and whether
    /// the program or its background flusher heard.
    void know_what_was_told() noexcept;

private:
    friend class NodeView;

    /// What the last meeting told, and later news leave out: a node may be there still. Nodes come
    /// to the next one after that.
    struct LastMeeting {
        explicit LastMeeting(std::size_t notices_max) : notices(notices_max) {}
        SparseArray<Notice> notices;  ///< where they are few
        std::size_t count = 0;        ///< of them
        Timestamp left_out;           ///< where they are many: covers them
        NewsSequence up_to = 0;       ///< of the signature
        std::uint64_t number = 0;     ///< of meetings
    };
    static constexpr std::size_t told_again_max(std::size_t notices_max) {
        return notices_max / 16;
    }
    void keep_for_who_is_at(std::uint64_t meeting) noexcept;
    /// All other nodes have acquired this one's releases up to `acquired`.
    void know_acquired(ReleaseNumber acquired) noexcept;
    /// By several threads, each of which has learned it another way.
    void raise_known_release(ReleaseNumber release) noexcept;

    // All under the latch.
    template <class Value>
    Value least_of(const std::vector<Value>& sent, std::span<const NodeId> told) const noexcept;
    std::size_t encode_since(NewsSequence since, NodeId skip, NewsHeader header,
                             NewsSequence clocks_since, std::span<const Notice> again,
                             MutableBytes out) noexcept;
    void add(const Notice& notice) noexcept;
    void join_clocks(std::uint32_t node, const Clock& learned, ReleaseNumber& applied) noexcept;
    void take_over(NeededReleases& needs, const AcquiredReleases& acquired) noexcept;
    void trim() noexcept;
    void show_min_wts() noexcept;
    void note_untold() noexcept { has_untold_.store(true, std::memory_order_release); }

    NodeId self_;
    OwnReleases& releases_;
    Statistics& statistics_;
    KnownEpochs epochs_;
    LearnedNews learned_;
    std::atomic<bool> program_flushes_{false};
    std::atomic<bool> own_flush_{false};  ///< of a thread here

    Latch latch_;
    SparseArray<Signature::Entry> entries_;
    SparseArray<std::uint32_t> index_;
    Signature signature_;
    /// Per peer, under the latch: what of the signature it was sent, and up to which of this
    /// node's releases that told, by notices or by min_wts.
    std::vector<NewsSequence> sent_;
    std::vector<ReleaseNumber> sent_releases_;
    NewsSequence known_to_all_ = 0;  ///< likewise
    NewsSequence known_before_ = 0;  ///< ahead of the last meeting, likewise
    Timestamp newest_wts_;           ///< of all notices, likewise
    LastMeeting last_meeting_;       ///< likewise
    /// Raised behind the acquire of each, by one thread at a time.
    std::atomic<std::uint64_t> meetings_{0};
    /// The newest that this node has from elsewhere than a barrier's or a fork's news, likewise.
    NewsSequence learned_aside_ = 0;
    SparseArray<Clock> clocks_;  ///< per node, likewise
    /// False: nothing was added to the signature since everyone knew all of it. Changes under the
    /// latch; read without it by synchronizations that have nothing to say.
    std::atomic<bool> has_untold_{false};
    std::atomic<std::uint64_t> min_wts_{0};  ///< copy of the signature's for the fault path
    std::atomic<bool> needs_open_{false};    ///< changes under the latch
    std::atomic<ReleaseNumber> known_release_{0};
    /// What a release had told of when it ended.
    struct Told {
        ReleaseNumber release = 0;
        NewsSequence sequence = 0;
    };
    struct Asking {
        std::atomic<bool> wanted{false};  ///< something has waited for known_release_ to rise
        ReleaseNumber from = 0;           ///< in the release role, as the next
        Told last;                        ///< of the last release when others were asked
        Told ended;                       ///< of the last one, under the latch
    } asking_;
};

}  // namespace hiroba::dsm
