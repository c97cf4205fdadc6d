// SPDX-License-Identifier: BSD-3-Clause
// Role: collectives of some nodes, any number of them under way at once, that go on in the handlers
// of messages: barrier, broadcast, gather, all-gather, all-to-all, reduce, all-reduce.
//
// A part is what one member sends another in one step of a collective. Parts have names: the
// collective's number in its team, the step, the sender. So they may come in any order, before this
// node has begun the collective, or before it has made the team. The thread that brings a part, or
// begins, carries the collective on as far as what has come allows, under the team's latch; it
// sends and calls back when it has let go of that: a sender outside a handler may poll, and come
// back here.
//
// Invariant: collective k of a team is the same on all its members, whatever it waits for; each
// part has its sender's call with it, and one that differs ends the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/async.hpp"

namespace hiroba::net {

/// What a member asks of its team. Memory is borrowed until the end.
struct TeamCall {
    enum class Kind : std::uint8_t {
        barrier,
        broadcast,
        gather,
        all_gather,
        all_to_all,
        reduce,
        all_reduce
    };
    /// Puts `count` values of `other` to `into`.
    using Each = void (*)(void* with, std::byte* into, const std::byte* other, std::size_t count);
    Kind kind{};
    std::uint32_t root = 0;  ///< a member's index
    const std::byte* from =
        nullptr;                  ///< of gathers and all-to-all; `bytes`, or that of each member
    std::byte* to = nullptr;      ///< of those, one after the other; else the data or values
    std::size_t bytes = 0;        ///< of the data, of a member's share, or of a piece
    std::size_t value_bytes = 1;  ///< of reductions
    Each each = nullptr;
    void* with = nullptr;
};

class Teams;

/// One member's part of a team.
class TeamPart {
public:
    TeamPart(Teams& of, std::uint64_t id) : of_(of), id_(id) {}
    TeamPart(const TeamPart&) = delete;
    TeamPart& operator=(const TeamPart&) = delete;

    std::uint32_t self() const noexcept { return self_; }
    const std::vector<NodeId>& members() const noexcept { return members_; }
    /// Begins the next collective of the team; `done` runs when this member's part is over. One
    /// thread at a time; not from handlers.
    void start(const TeamCall& call, const Completion& done) noexcept;
    /// Collectives that are not over.
    std::uint32_t under_way() const noexcept { return under_way_.load(); }

private:
    friend class Teams;
    /// What travels with each part of a call.
    struct Told {
        std::uint64_t what = 0;  ///< kind, root, bytes of a value
        std::uint64_t bytes = 0;
        bool operator==(const Told&) const = default;
    };
    using Name = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  ///< number, step, sender
    struct Part {
        std::vector<std::byte> bytes;
        std::uint64_t came = 0;
        bool is_whole = false;
        Told told;
    };
    struct Running {
        TeamCall call;
        Told told;
        Completion done;
        std::uint64_t number = 0;
        std::uint32_t step = 0;    ///< what is behind it, as its kind counts
        std::uint32_t unsent = 0;  ///< parts that a thread is about to send
        bool is_over = false;
        bool is_lost = false;  ///< over, since a member is lost
    };
    using Place = std::list<Running>::iterator;
    struct ToSend {
        Place of;
        NodeId to;
        std::uint32_t step;
        Bytes bytes;
    };
    static Told told_of(const TeamCall& call) noexcept;
    static std::string describe(const Told& told);

    void carry_on(Place running, std::vector<ToSend>& out);
    bool barrier(Place running, std::vector<ToSend>& out);
    bool broadcast(Place running, std::uint32_t root, std::uint32_t step, std::vector<ToSend>& out);
    bool exchange(Place running, std::vector<ToSend>& out);
    bool reduce(Place running, std::vector<ToSend>& out);
    /// Ends the process where `sender` is in another collective than this member.
    void compare(const Running& running, NodeId sender, const Told& told) const noexcept;
    /// The whole part of that name; nullptr: it has not come.
    const Part* look(const Running& running, std::uint32_t step, std::uint32_t sender);
    void drop(const Running& running, std::uint32_t step, std::uint32_t sender);
    void send(Place running, std::uint32_t to, std::uint32_t step, Bytes bytes,
              std::vector<ToSend>& out);
    /// Sends, then calls those back that are over.
    void finish(std::vector<ToSend>& out) noexcept;
    void arrived(NodeId from, std::span<const std::uint64_t> words, Bytes payload) noexcept;
    void lose(NodeId node) noexcept;

    Teams& of_;
    std::uint64_t id_;
    std::atomic<std::uint32_t> under_way_{0};
    Latch latch_;  ///< guards all below once the team is made
    std::vector<NodeId> members_;
    std::uint32_t self_ = 0;
    std::list<Running> running_;
    std::map<Name, Part> parts_;
    std::uint64_t begun_ = 0;
    bool has_lost_ = false;
};

/// All teams of a node.
class Teams {
public:
    /// Makes the handler; before connect().
    explicit Teams(Async& async);
    Teams(const Teams&) = delete;
    Teams& operator=(const Teams&) = delete;

    /// A number for split(), used once on this node.
    std::uint32_t next_number() noexcept { return numbers_.fetch_add(1); }
    /// The id of a team whose first member's number is `number`; of `nobody`, the n-th of all
    /// nodes.
    static std::uint64_t id_of(std::optional<NodeId> first, std::uint32_t number) noexcept {
        return std::uint64_t{first ? first->value + 1 : 0} << 32 | number;
    }
    std::shared_ptr<TeamPart> make(std::uint64_t id, std::vector<NodeId> members,
                                   std::uint32_t self);
    void forget(const TeamPart& team) noexcept;
    /// Ends the collectives of teams that `node` is in with Outcome::peer_lost, now and later.
    void lose(NodeId node) noexcept;

private:
    friend class TeamPart;
    std::shared_ptr<TeamPart> part_of(std::uint64_t id);
    static void came(void* context, NodeId from, std::span<const std::uint64_t> words,
                     Bytes payload) noexcept;

    Async& async_;
    std::atomic<std::uint32_t> numbers_{0};
    Latch latch_;  ///< guards all below
    std::unordered_map<std::uint64_t, std::shared_ptr<TeamPart>> teams_;
    std::vector<NodeId> lost_;
};

}  // namespace hiroba::net
