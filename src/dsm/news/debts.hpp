// SPDX-License-Identifier: BSD-3-Clause
// Role: what nodes owe each other (docs/protocol.md#before): the boards on which a node shows its
// releases to others that have come upon their bytes, what others have asked for, and the thread
// that pays where the program's threads compute.
// Invariant: a board never tells of a release whose notices are not among its news.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/dsm.hpp"
#include "dsm/news/known_news.hpp"
#include "dsm/news/news_board.hpp"
#include "dsm/news/own_releases.hpp"
#include "dsm/news/payer_thread.hpp"

namespace hiroba::dsm {

/// Thread: any; nothing but wake() may be called from a handler.
class Debts {
public:
    Debts(net::Endpoint& endpoint, gas::Segment boards, std::size_t news_bytes_max,
          const OwnReleases& releases, KnownNews& news)
        : self_(endpoint.self()),
          releases_(releases),
          news_(news),
          board_(endpoint, std::move(boards), news_bytes_max),
          read_(news_bytes_max) {}
    void attach() { board_.attach(); }
    /// What nodes tell each other of blocks and turns lies on the boards as well.
    NewsBoard& board() noexcept { return board_; }

    // What others owe.
    /// Learns what the board of `stamp`'s writer tells, by learn(news). False: it does not tell of
    /// that release yet.
    template <class Learn>
    bool read(Stamp stamp, Learn&& learn) noexcept;
    /// As read(), and where it is not told of, the release is wanted from here on.
    /// @param first  then: whether nobody had told the writer so before
    template <class Learn>
    bool read_or_want(Stamp stamp, bool& first, Learn&& learn) noexcept;
    /// The board does not repeat what its node has told all others. Some of that may lie here
    /// unread.
    void learn_unread_by(SharedMemory::UnreadNews unread) noexcept { unread_ = unread; }
    void learn_unread() noexcept {
        if (unread_.learn != nullptr) unread_.learn(unread_.context);
    }

    // What this node owes.
    bool is_release_wanted() noexcept { return board_.written() < board_.wanted(); }
    bool has_to_pay() noexcept { return is_release_wanted() || board_.is_block_wanted(); }
    /// A release is wanted: for a while each is shown unasked.
    void note_asked() noexcept { unasked_.store(unasked_max, std::memory_order_relaxed); }
    /// Has a release made soon: another node is about to ask for what this node's atomics owe.
    void want_own() noexcept { board_.want(self_, releases_.owed()); }
    /// Behind a release, which has told of something or not.
    void show_if_wanted(bool made) noexcept;
    void show() noexcept;

    PayerThread& payer() noexcept { return payer_; }

    // Hints for who looks by exchanges. Thread: handlers, too.
    /// `node` has asked for a block or a release.
    void note_asker(NodeId node) noexcept { askers_.fetch_or(bit_of(node)); }
    /// Calls tell(node) for each node that has asked since; for others by chance.
    template <class Tell>
    void answer(std::uint32_t nodes, Tell&& tell) noexcept {
        if (askers_.load(std::memory_order_relaxed) == 0) return;
        const std::uint64_t askers = askers_.exchange(0);
        for (NodeId node{0}; node.value < nodes; ++node.value)
            if (node != self_ && (askers & bit_of(node)) != 0) tell(node);
    }
    void note_answer() noexcept { answers_.fetch_add(1, std::memory_order_release); }
    /// Changes when something that this node has asked for is there.
    std::uint32_t answers() const noexcept { return answers_.load(std::memory_order_acquire); }

private:
    friend class NodeView;

    /// After so many releases that nobody has asked for, news are no longer shown unasked.
    static constexpr std::uint32_t unasked_max = 64;
    static constexpr std::uint64_t bit_of(NodeId node) noexcept {
        return std::uint64_t{1} << node.value % 64;
    }

    NodeId self_;
    const OwnReleases& releases_;
    KnownNews& news_;
    NewsBoard board_;
    Latch board_latch_;  ///< of what is written there
    Latch read_latch_;
    SparseArray<std::byte> read_;  ///< under read_latch_
    SharedMemory::UnreadNews unread_;
    std::atomic<std::uint32_t> unasked_{0};
    std::atomic<std::uint64_t> askers_{0};
    std::atomic<std::uint32_t> answers_{0};
    PayerThread payer_;
};

template <class Learn>
bool Debts::read(Stamp stamp, Learn&& learn) noexcept {
    const std::scoped_lock guard{read_latch_};
    const auto news = board_.read(stamp.writer(), stamp.release(), {read_.data(), read_.size()});
    if (!news) return false;
    learn(*news);
    return true;
}

template <class Learn>
bool Debts::read_or_want(Stamp stamp, bool& first, Learn&& learn) noexcept {
    if (!board_.looks_in_one_exchange(stamp.writer())) {
        if (read(stamp, learn)) return true;
        first = board_.want(stamp.writer(), stamp.release());
        return false;
    }
    const std::scoped_lock guard{read_latch_};
    const auto news =
        board_.read_or_want(stamp.writer(), stamp.release(), {read_.data(), read_.size()}, first);
    if (!news) return false;
    learn(*news);
    return true;
}

}  // namespace hiroba::dsm
