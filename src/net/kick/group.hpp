// SPDX-License-Identifier: BSD-3-Clause
// Role: barrier, all-reduce and broadcast among nodes of the job, or some of them.
// Invariant: every node of the job reserves the same collectives in the same order, members or not;
// only members use them.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/kick/byte_marks.hpp"
#include "net/kick/kick_store.hpp"
#include "net/kick/reduce_phases.hpp"

namespace hiroba::net::kick {

/// The nodes that take part, in the order of their indices.
using Group = std::vector<NodeId>;

/// All nodes of the board's job.
Group everyone(const Endpoint& endpoint);

/// A collective's kicks: to the members' parts of the LLCM at `place`. Meets `Lines`.
class GroupLines {
public:
    /// After Board::attach(). An error when this node is no member or one is named twice, or when
    /// all of more than `tree_arity` members are to kick all.
    static Result<GroupLines> open(Board& board, Offset place, const Group& group, Shape shape);
    /// The lines of all nodes of the job, in rank order, without a list of them.
    static Result<GroupLines> open(Board& board, Offset place, Shape shape);

    const TreeNode& here() const noexcept { return node_; }
    Board& board() noexcept { return *board_; }

    void kick_byte(std::uint32_t member, std::uint32_t offset, std::uint8_t value) noexcept {
        peer(member).bytes.store(in_page_ + offset, value);
    }
    void kick_word(std::uint32_t member, std::uint32_t offset, std::uint64_t value) noexcept {
        peer(member).words.store(in_page_ + offset, value);
    }
    void kick_word_with_next(std::uint32_t member, std::uint32_t offset,
                             std::uint64_t value) noexcept {
        peer(member).words.store_with_next(in_page_ + offset, value);
    }
    NodeId node(std::uint32_t member) noexcept { return peer(member).words.node(); }
    void flush(std::uint32_t member) noexcept { board_->wake(peer(member).words.node()); }
    std::uint8_t byte_at(std::uint32_t offset) noexcept {
        return board_->load<std::uint8_t>(place_ + offset);
    }
    std::uint64_t word_at(std::uint32_t offset) noexcept {
        return board_->load<std::uint64_t>(place_ + offset);
    }

private:
    struct Peer {
        Kick<std::uint8_t> bytes;
        Kick<std::uint64_t> words;
    };
    GroupLines(Board& board, Offset place, const TreeNode& node, Shape shape,
               std::vector<Peer> peers)
        : board_(&board),
          place_(place),
          in_page_(static_cast<std::uint32_t>(place % page_bytes)),
          node_(node),
          shape_(shape),
          peers_(std::move(peers)) {}
    template <class NodeOf>
    static Result<GroupLines> open_peers(Board& board, Offset place, const TreeNode& here,
                                         Shape shape, NodeOf&& node_of);
    Peer& peer(std::uint32_t member) noexcept {
        return peers_[shape_ == Shape::all_to_all ? member : node_.neighbour(member)];
    }

    Board* board_;
    Offset place_;
    std::uint32_t in_page_;
    TreeNode node_;
    Shape shape_;
    std::vector<Peer> peers_;  ///< all members, or the tree's neighbours alone
};

/// Split-phase barrier. Owned by one thread of the node at a time.
class Barrier {
public:
    static Result<Offset> reserve(Board& board) {
        return board.reserve(ByteMarks<GroupLines>::bytes);
    }
    /// A barrier of all nodes of the job.
    static Result<Barrier> open(Board& board, Offset place);
    static Result<Barrier> open(Board& board, Offset place, const Group& group) {
        return open(board, place, group, shape_for(static_cast<std::uint32_t>(group.size())));
    }
    static Result<Barrier> open(Board& board, Offset place, const Group& group, Shape shape);

    void arrive() noexcept {
        phases_.arrive();
        passed();
    }
    /// True when all have arrived; ask until then, or wait().
    bool passed() noexcept { return phases_.passed(); }
    void wait() noexcept {
        if (!passed()) board_->wait_for([this] { return passed(); });
    }
    void arrive_and_wait() noexcept {
        arrive();
        wait();
    }
    /// Calls each(node) for those without whom it does not go on.
    template <class Each>
    void each_awaited(Each&& each) noexcept {
        phases_.each_awaited(
            [&](std::uint32_t member) { each(phases_.marks().wire().node(member)); });
    }

private:
    Barrier(GroupLines lines, Shape shape)
        : board_(&lines.board()), phases_(ByteMarks<GroupLines>{lines}, lines.here(), shape) {}
    Board* board_;
    BarrierPhases<ByteMarks<GroupLines>> phases_;
};

/// The operations of an all-reduce; any callable that combines two values will do.
namespace op {
using Sum = std::plus<>;
using And = std::bit_and<>;
using Or = std::bit_or<>;
using Xor = std::bit_xor<>;
struct Min {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return std::min(a, b);
    }
};
struct Max {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return std::max(a, b);
    }
};
}  // namespace op

/// What all members of a reduction have to call alike: a broadcast's size and root, or a sum.
struct ReduceCall {
    std::uint32_t bytes = 0;  ///< of a broadcast value, 1 to 16; 0: no broadcast
    std::uint32_t root = 0;   ///< index in the group
    /// As it travels.
    constexpr std::uint32_t word() const noexcept { return bytes << root_bits | root; }
    static constexpr ReduceCall of(std::uint32_t word) noexcept {
        return {word >> root_bits, word & ((1u << root_bits) - 1)};
    }
    static constexpr std::uint32_t root_bits = 27;
};

/// Ends the process with a line that has both calls.
[[noreturn]] void refuse_unequal_reduction(NodeId self, ReduceCall here, ReduceCall other) noexcept;

/// Combines one value of each member; all get the same bits. Owned by one thread at a time.
template <class T>
class AllReduce {
public:
    static Result<Offset> reserve(Board& board) {
        return board.reserve(ReducePhases<GroupLines, T>::bytes);
    }
    static Result<AllReduce> open(Board& board, Offset place, const Group& group) {
        return open(board, place, group, shape_for(static_cast<std::uint32_t>(group.size())));
    }
    static Result<AllReduce> open(Board& board, Offset place, const Group& group, Shape shape) {
        auto lines = GroupLines::open(board, place, group, shape);
        if (!lines) return lines.error();
        return AllReduce{std::move(*lines), shape};
    }

    /// @param combine  associative; an integer sum comes back in T
    /// @param call  equal on all members, else the process ends with a line
    template <class Combine>
    T operator()(const T& value, Combine&& combine, ReduceCall call = {}) noexcept {
        start(value, call);
        if (!finished(combine)) board_->wait_for([&] { return finished(combine); });
        return result();
    }

    // The same in parts.
    void start(const T& value, ReduceCall call) noexcept {
        phases_.start(value, (call_ = call).word());
    }
    /// True when result() is there; ask until then.
    template <class Combine>
    bool finished(Combine&& combine) noexcept {
        return phases_.finished(
            [&](const T& a, const T& b) { return static_cast<T>(combine(a, b)); });
    }
    const T& result() const noexcept {
        if (phases_.other_call() != call_.word()) [[unlikely]]
            refuse_unequal_reduction(board_->self(), call_, ReduceCall::of(phases_.other_call()));
        return phases_.result();
    }
    /// Calls each(node) for those without whom it does not go on.
    template <class Each>
    void each_awaited(Each&& each) noexcept {
        phases_.each_awaited([&](std::uint32_t member) { each(phases_.wire().node(member)); });
    }

private:
    AllReduce(GroupLines lines, Shape shape)
        : board_(&lines.board()), phases_(lines, lines.here().index, lines.here().members, shape) {}
    Board* board_;
    ReducePhases<GroupLines, T> phases_;
    ReduceCall call_;
};

/// Gives one member's value to all. An all-reduce of its bits: nobody leaves before the value's
/// owner has entered, and the slots of the former value are free when the next one comes.
template <class T>
class Broadcast {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
    struct Bits {
        std::array<std::uint64_t, 2> words;
    };

public:
    static Result<Offset> reserve(Board& board) { return AllReduce<Bits>::reserve(board); }
    static Result<Broadcast> open(Board& board, Offset place, const Group& group) {
        auto bits = AllReduce<Bits>::open(board, place, group);
        if (!bits) return bits.error();
        const auto self = std::find(group.begin(), group.end(), board.self());
        return Broadcast{std::move(*bits), static_cast<std::uint32_t>(self - group.begin())};
    }

    /// @param root   index in the group of the member whose `value` counts; equal on all, else the
    ///               process ends with a line
    T operator()(const T& value, std::uint32_t root) noexcept {
        Bits mine{};
        if (root == index_) std::memcpy(mine.words.data(), &value, sizeof value);
        const auto either = [](const Bits& a, const Bits& b) {
            return Bits{{a.words[0] | b.words[0], a.words[1] | b.words[1]}};
        };
        const Bits all = bits_(mine, either, {.bytes = sizeof value, .root = root});
        T result;
        std::memcpy(&result, all.words.data(), sizeof result);
        return result;
    }

private:
    Broadcast(AllReduce<Bits> bits, std::uint32_t index) : bits_(std::move(bits)), index_(index) {}
    AllReduce<Bits> bits_;
    std::uint32_t index_;
};

}  // namespace hiroba::net::kick
