// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node tells whoever has come upon bytes of a release it has not acquired: a board in
// registered memory with the number of the node's last release told there, and its news; a word
// in which others say up to which release they want it; and two words for each other node, in which
// that says which block it wants of those kept here, and which for an atomic; a word that
// changes while this node makes atomics; a word for each other node, how far this one has acquired
// that node's releases; and, at node 0, who goes on alone with atomics.
// Invariant: number and news are of one moment (version odd while they change). `wanted` only
// rises.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/latch.hpp"
#include "base/sparse_array.hpp"
#include "dsm/protocol/stamp.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

/// Thread: any; nothing here may be called from a handler.
class NewsBoard {
public:
    static Result<gas::Segment> allocate(net::Endpoint& endpoint, std::size_t news_bytes_max);
    NewsBoard(net::Endpoint& endpoint, gas::Segment segment, std::size_t news_bytes_max)
        : self_(endpoint.self()),
          nodes_(endpoint.nodes()),
          segment_(std::move(segment)),
          bytes_max_(round_up(news_bytes_max, 8)),
          own_(news_bytes_max),
          seen_wanted_(nodes_) {}
    void attach() { segment_.attach(); }

    /// Where write() takes the news from. Both with one latch of the caller's.
    MutableBytes own_news() noexcept { return {own_.data(), bytes_max_}; }
    /// Shows the first `bytes` of own_news() as those of all releases up to `release`.
    void write(ReleaseNumber release, std::size_t bytes) noexcept;
    /// Up to which of this node's releases its board tells.
    ReleaseNumber written() noexcept { return own(release_at).load(); }

    /// The news of `node`, if they tell of its releases up to `release`: into `to`, of
    /// news_bytes_max. Empty: not yet.
    std::optional<Bytes> read(NodeId node, ReleaseNumber release, MutableBytes to) noexcept;

    /// Tells `node` that its release `release` is wanted. False: somebody has told it before.
    bool want(NodeId node, ReleaseNumber release) noexcept;
    /// Whether read() and want() of that node's board are one exchange.
    bool looks_in_one_exchange(NodeId node) const noexcept {
        return segment_.in_one_exchange(node);
    }
    /// Only where they are: both. @param first  what want() returns
    std::optional<Bytes> read_or_want(NodeId node, ReleaseNumber release, MutableBytes to,
                                      bool& first) noexcept;
    /// Up to which of this node's releases others want to be told.
    ReleaseNumber wanted() noexcept { return own(wanted_at).load(); }

    /// Tells `node` that this one wants `block`, in place of what it wanted there before.
    void want_block(NodeId node, std::uint32_t block) noexcept;
    /// As if `from` had told it here.
    void note_wanted(NodeId from, std::uint32_t block) noexcept;
    bool is_block_wanted() noexcept { return own(any_block_at).load() != 0; }
    /// Calls serve(block) for each block that another node wants; false: it stays wanted.
    template <class Serve>
    void each_wanted_block(Serve&& serve) noexcept {
        if (own(any_block_at).exchange(0) == 0) return;
        for (std::uint32_t node = 0; node < nodes_; ++node) {
            const auto word = own(block_wanted_at(NodeId{node}));
            std::uint64_t wanted = word.load();
            if (wanted == 0) continue;
            if (serve(static_cast<std::uint32_t>(wanted - 1))) {
                word.compare_exchange_strong(wanted, 0);
            } else {
                own(any_block_at).store(1);
            }
        }
    }

    /// This node has acquired the releases of `node` up to `release`. In the acquire role.
    void show_acquired(NodeId node, ReleaseNumber release) noexcept {
        const auto word = own(acquired_at(node));
        // Release: who finds it, finds stale here what they have made so.
        if (word.load(std::memory_order_relaxed) < release)
            word.store(release, std::memory_order_release);
    }
    /// Up to which of this node's releases all others have acquired them. An exchange with each.
    ReleaseNumber acquired_by_all() noexcept;

    /// This node makes atomics. `stopped`: one of its threads is in the runtime for one.
    void note_active(bool stopped) noexcept {
        const auto word = own(activity_at);
        const std::uint64_t next = (word.load(std::memory_order_relaxed) | 1) + 1;
        word.store(next | (stopped ? 1 : 0), std::memory_order_relaxed);
    }
    /// Another word from look to look, or an odd one: the node makes atomics.
    std::uint64_t activity_of(NodeId node) noexcept { return segment_.load({node, activity_at}); }

    /// The node that goes on alone with its atomics (AtomicQuantum), by one word for all, at node
    /// 0. Empty: none.
    std::optional<NodeId> token_holder() noexcept {
        const std::uint64_t word = segment_.load({NodeId{0}, token_at});
        return word == 0 ? std::nullopt
                         : std::optional{NodeId{static_cast<std::uint32_t>(word - 1)}};
    }
    /// From `holder`, if it has it still. A node that came too late for the last time that it was
    /// here wants nothing of this one; one that wants it says so again.
    bool take_token(std::optional<NodeId> holder) noexcept {
        own(token_wanted_at).store(0);
        return change_token(holder, self_);
    }
    /// Gives it away, if this node has it still. A node that has wanted it takes it.
    void give_token() noexcept {
        own(token_wanted_at).store(0);
        change_token(self_, std::nullopt);
    }
    void want_token(NodeId holder) noexcept { segment_.store({holder, token_wanted_at}, 1); }
    bool is_token_wanted() noexcept {
        return own(token_wanted_at).load(std::memory_order_relaxed) != 0;
    }

    /// How much a node wants a block for an atomic that another's use of it keeps away, and
    /// `given`: that other holds back. From one that waits for its turn to one that has failed
    /// twice, and one that fails each time: what it asks for comes too late for it.
    enum class Turn : std::uint8_t { patient, urgent, insistent, starved, given };
    /// Tells `node` so, in place of what it was told before.
    void ask_turn(NodeId node, std::uint32_t block, Turn turn) noexcept;
    void end_turn(NodeId node) noexcept { segment_.store({node, turn_at(self_)}, 0); }
    /// As if `from` had told it here.
    void note_turn(NodeId from, std::uint32_t block, Turn turn) noexcept {
        own(turn_at(from)).store(turn_word(block, turn));
        own(any_turn_at).store(1);
    }
    void note_turn_ended(NodeId from) noexcept { own(turn_at(from)).store(0); }
    /// Whether `node` has given this one the turn that it has asked for.
    bool is_turn_given(NodeId node, std::uint32_t block) noexcept {
        return segment_.load({node, turn_at(self_)}) == turn_word(block, Turn::given);
    }
    /// A hint: who comes too late for it asks again.
    bool is_turn_asked() noexcept { return own(any_turn_at).load(std::memory_order_relaxed) != 0; }
    /// A node's turn at the block that it has asked for.
    struct GivenTurn {
        NodeId node;
        std::uint32_t block;
    };
    /// Gives the first node that asks, from this one's number on, the turn, if may(turn, block).
    /// Empty: to nobody.
    template <class May>
    std::optional<GivenTurn> give_turn(May&& may) noexcept;
    /// Whether `node` has not ended the turn that it was given; it may have asked once more.
    bool has_turn(NodeId node, std::uint32_t block) noexcept {
        return own(turn_at(node)).load() >> turn_shift == block + std::uint64_t{1};
    }
    void take_turn_back(NodeId node, std::uint32_t block) noexcept {
        std::uint64_t given = turn_word(block, Turn::given);
        own(turn_at(node)).compare_exchange_strong(given, 0);
    }

    /// All that decides what is read from it, for explorers (NodeView in test/sim/dsm).
    void show(void (*visit)(void* context, Bytes part), void* context) noexcept {
        visit(context, {segment_.local(), activity_at});
        visit(context, {segment_.local() + version_at,
                        news_at - version_at + bytes_max_ + bytes_of_words(nodes_)});
    }

private:
    static constexpr std::uint64_t wanted_at = 0;
    static constexpr std::uint64_t any_block_at = 8;  ///< set after the word of a node
    static constexpr std::uint64_t any_turn_at = 16;  ///< likewise
    static constexpr std::uint64_t activity_at = 64;  ///< decides nothing, as the next two
    static constexpr std::uint64_t token_at = 72;
    static constexpr std::uint64_t token_wanted_at = 80;
    static constexpr std::uint64_t version_at = 128;
    static constexpr std::uint64_t release_at = 136;
    static constexpr std::uint64_t bytes_at = 144;
    static constexpr std::uint64_t news_at = 152;

    std::uint64_t block_wanted_at(NodeId by) const noexcept {
        return news_at + bytes_max_ + 8 * std::uint64_t{by.value};
    }
    std::uint64_t turn_at(NodeId by) const noexcept {
        return block_wanted_at(by) + std::uint64_t{8} * nodes_;
    }
    std::uint64_t acquired_at(NodeId of) const noexcept {
        return turn_at(of) + std::uint64_t{8} * nodes_;
    }
    /// The words behind the news.
    static constexpr std::size_t bytes_of_words(std::uint32_t nodes) noexcept {
        return std::size_t{24} * nodes;
    }
    static constexpr unsigned turn_shift = 8;
    static constexpr std::uint64_t turn_word(std::uint32_t block, Turn turn) noexcept {
        return (block + std::uint64_t{1}) << turn_shift | static_cast<std::uint8_t>(turn);
    }
    bool change_token(std::optional<NodeId> from, std::optional<NodeId> to) noexcept {
        const auto word = [](std::optional<NodeId> node) {
            return node ? node->value + std::uint64_t{1} : 0;
        };
        return segment_.compare_swap({NodeId{0}, token_at}, word(from), word(to)) == word(from);
    }
    /// The board's words, and its news in `along`, as far as they fit.
    struct Seen {
        std::uint64_t head[3] = {};  ///< version, release, bytes
        std::uint64_t after = 0;     ///< version
    };
    std::optional<Bytes> read_far(NodeId node, ReleaseNumber release, MutableBytes to,
                                  bool* first) noexcept;
    std::array<gas::Segment::Access, 3> look(Seen& seen, MutableBytes along) noexcept;
    /// A word of this node's: whoever changes it from elsewhere does so in this memory.
    std::atomic_ref<std::uint64_t> own(std::uint64_t at) noexcept {
        return std::atomic_ref{*reinterpret_cast<std::uint64_t*>(segment_.local() + at)};
    }

    NodeId self_;
    std::uint32_t nodes_;
    gas::Segment segment_;
    std::size_t bytes_max_;
    SparseArray<std::byte> own_;
    /// What was last found of each node's `wanted`: never more than it is.
    std::vector<std::atomic<ReleaseNumber>> seen_wanted_;
};

template <class May>
std::optional<NewsBoard::GivenTurn> NewsBoard::give_turn(May&& may) noexcept {
    own(any_turn_at).store(0);
    std::optional<GivenTurn> given;
    bool others = false;
    for (std::uint32_t i = 1; i < nodes_; ++i) {
        const NodeId node{(self_.value + i) % nodes_};
        const auto word = own(turn_at(node));
        std::uint64_t asked = word.load();
        if (asked == 0) continue;
        const auto turn = static_cast<Turn>(asked & ((1u << turn_shift) - 1));
        const auto block = static_cast<std::uint32_t>((asked >> turn_shift) - 1);
        if (!given && turn != Turn::given && may(turn, block) &&
            word.compare_exchange_strong(asked, turn_word(block, Turn::given))) {
            given = {node, block};
        } else {
            others = true;
        }
    }
    if (others) own(any_turn_at).store(1);
    return given;
}

}  // namespace hiroba::dsm
