// SPDX-License-Identifier: BSD-3-Clause
// Role: moves pages: the mover's side, which is the node that wants them, and the sharers'.
// Source: Endo & Taura, MGAS-2, section 3.2 and figure 4. There the directory node leads; here the
// mover does, which saves two messages' ways (docs/decisions/the-mover-leads.md).
//
//   mover --claim--> directory node --granted: owner, sharers--> mover
//   mover --stop----> sharers: hold writes back, let those under way end    --ready-->
//   mover copies the pages from their owner
//   mover --move----> sharers: read the new copy, let reads of the old end  --ready-->
//   mover --resume--> sharers: write; the former owner takes the memory back
//   mover --commit--> directory node: tells the nodes that wait, grants the next mover's claim
//
// Freeing pages is the same, to nowhere and without the copy. Invariant: no mover waits for a grant
// while it has stopped another page, so movers never wait for each other. Sharers keep nothing but
// the pages' states: one that has not drained says so and is asked again.
//
// Why three waves. Accesses of sharers are plain loads and stores (or one-sided requests) that
// no other node hears of. Two things may go wrong. A store to the old copy behind the mover's
// copying is lost: so writes are held back everywhere, and those under way have ended, before the
// first byte is copied. And a store to the new copy, of which its author then tells another sharer
// that still reads the old one, runs backwards in time: so no sharer writes before all sharers have
// turned to the new copy and the reads of the old have ended. The paper sends the second and third
// wave together and has this fault (planted: resumed_with_the_move). Reads go on all the while.
//
// How a sharer knows that accesses under way have ended. Hits announce their page in the thread's
// slot by a plain store and look at the page's state again. apply() changes the state, has all
// threads execute a barrier (fence_all_threads(), membarrier(2)), and then looks at the slots: a
// thread either was seen in its slot, or sees the new state (thread_slots.hpp). Accesses that go by
// requests are counted in the page's entry. A sharer that still has some answers "not drained",
// keeps nothing, and is asked again: so a mover that dies leaves no debt behind.
//
// Messages cross, because they come from different nodes. The stop of the next mover, granted by
// the directory node at commit, may overtake this mover's resume: it has a higher version and
// implies it. The directory node's answer to a miss may be older than a stop that has come
// meanwhile: entries have versions and questions have tokens, and what is older is dropped
// (planted: late_answer_taken).
//
// A node that misses a page while it moves joins the move. The directory node, or the node itself
// where it looks one-sidedly, enters it among the sharers and tells the mover; before the second
// wave the mover stops the page there, too, and from then on it is a sharer like others: it reads
// the old copy, is told to move, and is waited for (planted: joined_and_not_told). Its answer to
// the stop is not awaited, since it has never written. Behind the second wave it waits for the
// commit. A miss that waited for the commit would wait for views of the page, and their holders
// perhaps for it.
//
// Death. A sharer that dies counts as ready. If the owner dies before the copy, the page is lost;
// the mover commits that. If the mover dies, the sharers it told and the directory node give its
// pages up when the launcher tells of the death (dead_nodes.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "base/latch.hpp"
#include "gas/relocatable/directory.hpp"
#include "gas/relocatable/metadata_cache.hpp"
#include "gas/relocatable/request.hpp"
#include "gas/relocatable/space_messages.hpp"
#include "hiroba/gas.hpp"

namespace hiroba::gas {

class Relocator {
public:
    enum class Goal : std::uint8_t { own, free };

    Relocator(const SpaceShape& shape, net::Async& async, net::Handle frames, MetadataCache& cache,
              SpaceMessages& messages, const DeadNodes& dead)
        : shape_(shape),
          async_(async),
          frames_(frames),
          cache_(cache),
          messages_(messages),
          dead_(dead),
          self_(async.endpoint().self()) {}
    void use(Directory& directory) noexcept { directory_ = &directory; }

    /// Moves the pages, at most messages.pages_max(), each named once; returns when all have moved
    /// or failed. Any thread; not from handlers.
    Status move(std::span<const std::uint64_t> pages, Goal goal);

    // --- what messages and the launcher tell
    // -------------------------------------------------------

    void granted(std::uint64_t token, SpaceMessages::Words words) noexcept;
    void ready(NodeId from, std::uint64_t token, SpaceMessages::Words words) noexcept;
    /// Nodes miss pages that this node moves.
    void joined(SpaceMessages::Words words) noexcept;
    /// A mover's stop, move or resume.
    void wave(NodeId from, SpaceMessageKind kind, std::uint64_t token,
              SpaceMessages::Words words) noexcept;

    std::uint64_t pages_moved() const noexcept { return pages_moved_.load(); }

private:
    struct Peer {
        std::uint32_t rank = 0;
        bool ready = false;
        bool busy = false;  ///< has answered that it has not drained
    };
    /// Pages that were granted together and move together.
    struct Change {
        enum class Phase : std::uint8_t { stopping, copying, moving, done };
        std::uint64_t number = 0;
        Phase phase = Phase::stopping;
        std::vector<GrantedPage> pages;
        std::vector<PageWord> next;
        std::vector<Peer> peers;
        std::map<std::uint32_t, Request> copies;  ///< by the node copied from
    };
    struct Answer {
        std::uint32_t from = 0;
        std::uint64_t change = 0;
        SpaceMessageKind wave{};
        bool drained = false;
    };
    /// One move() under way. Handlers add to what has come; its thread does the rest.
    struct Call {
        std::uint64_t token = 0;
        Goal goal{};
        Status status;
        std::unordered_set<std::uint64_t> wanted;  ///< not granted yet
        std::vector<std::uint64_t> refused;        ///< to be claimed again
        std::vector<std::unique_ptr<Change>> changes;
        std::uint64_t changes_made = 0;
        std::uint64_t pause_ns = 0;

        Latch latch;
        std::vector<std::uint64_t> granted;  ///< words of messages
        std::vector<Answer> answers;
        std::vector<std::uint64_t> joined;  ///< words of messages
        std::atomic<std::uint64_t> events{0};
        /// Not counted in `events`: an event ends a pause, and nodes that wait would send messages
        /// of this kind so often that the questions due after a pause would never be asked.
        std::atomic<bool> has_joined{false};
    };

    bool take_events(Call& call);
    RankSet awaited(const Call& call) const;
    void begin(Call& call, std::vector<GrantedPage> pages);
    void take_joined(Call& call);
    void join(const Call& call, std::uint64_t page, std::uint32_t rank);
    bool advance(Call& call, Change& change);
    void send_wave(const Call& call, Change& change, SpaceMessageKind kind, bool again);
    void apply_here(const Change& change, SpaceMessageKind kind);
    bool is_drained_here(const Change& change) const;
    bool is_ready(const Change& change) const;
    bool must_ask_again(const Change& change) const;
    void copy(Call& call, Change& change);
    void note_copies(Call& call, Change& change);
    void finish(Call& call, Change& change);
    bool give_up_dead_directories(Call& call);
    void pause(Call& call, std::uint64_t seen, std::uint32_t dead_seen);
    static void fail(Call& call, Fault fault, std::uint32_t rank, std::uint64_t page);
    static SpaceMessageKind wave_of(const Change& change) noexcept {
        return change.phase == Change::Phase::stopping ? SpaceMessageKind::stop
                                                       : SpaceMessageKind::move;
    }

    SpaceShape shape_;
    net::Async& async_;
    net::Handle frames_;
    MetadataCache& cache_;
    SpaceMessages& messages_;
    const DeadNodes& dead_;
    NodeId self_;
    Directory* directory_ = nullptr;
    Latch calls_latch_;
    std::map<std::uint64_t, Call*> calls_;
    std::uint64_t next_token_ = 1;
    std::atomic<std::uint64_t> pages_moved_{0};
};

}  // namespace hiroba::gas
