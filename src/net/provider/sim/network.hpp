// SPDX-License-Identifier: BSD-3-Clause
// Role: the simulated interconnect: cards of nodes, and between them a wire that delays, loses,
// doubles and reorders packets and can be cut. Cards are reliable, as InfiniBand's are: they number
// packets, acknowledge them, send them again, and drop what they have seen; so above them a bad
// wire shows as delay and disorder, and as silence only when nothing gets through for long.
// Invariant: a packet is executed by the card it was sent to at most once, whatever the wire does.
// Cards keep nothing of nodes they never exchanged a packet with.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "net/provider/provider.hpp"
#include "net/provider/sim/scheduler.hpp"

namespace hiroba::net::sim {

class SimProvider;

/// What calls of the program a card takes at once.
enum class Calls : std::uint8_t {
    one_thread,    ///< one for everything, as on Tofu: two at once are a bug of the caller
    locked_queues  ///< any, as on InfiniBand: one at a time for each queue, the others wait
};

/// Times in nanoseconds, shares in percent.
struct NetworkOptions {
    std::uint64_t latency_ns = 1500;        ///< one way
    std::uint64_t jitter_ns = 500;          ///< added, from 0 to this
    std::uint64_t bytes_per_us = 10'000;    ///< what leaves a card
    std::uint32_t loss = 0, duplicate = 0;  ///< of packets, acknowledgements too
    std::uint32_t reorder = 0;              ///< share of packets held back
    std::uint64_t reorder_ns = 20'000;      ///< for up to this
    std::uint64_t resend_min_ns = 20'000;   ///< without acknowledgement; doubles each time
    std::uint64_t resend_max_ns = 10'000'000;
    std::uint64_t silence_max_ns = 30'000'000'000;  ///< after which a peer counts as lost
    std::size_t packet_bytes = 1024;  ///< larger puts and gets go in parts, in any order
    std::size_t queue_bytes = std::size_t{256} << 10;  ///< messages under way to one peer
    std::uint32_t operations_max = 256;                ///< under way from one node
    Calls calls = Calls::locked_queues;
    std::uint32_t queues = 4;      ///< of a card; a peer has one of them
    std::uint64_t call_ns = 0;     ///< how long a call takes; others run meanwhile
    std::uint32_t slow_calls = 0;  ///< share of calls that take a turn
    /// No packets for one-sided access: each call is one step of the scheduler, done when it
    /// returns.
    bool steps = false;
};

/// One packet, from its first sending until it is acknowledged.
struct Packet {
    enum class Kind : std::uint8_t { message, put, get, got, atomic, old, done, wake };
    Kind kind{};
    NodeId from, to;
    std::uint32_t life = 0;      ///< of its sender: which of the node's providers
    std::uint64_t sequence = 0;  ///< on its link
    std::uint64_t order = 0;     ///< of messages on their link
    std::uint32_t attempts = 0;
    std::uint64_t first_sent_ns = 0;
    bool acknowledged = false;

    std::uint32_t operation = 0;  ///< index at the node that asked
    std::uint64_t generation = 0;
    MessageKind message{};
    bool urgent = false;
    AtomicOp atomic{};
    RegionId region;
    std::uint64_t offset = 0;  ///< in the region; of `got`: from the start of the operation
    std::uint64_t operand = 0, expected = 0;
    const std::byte* memory = nullptr;  ///< what a put reads when the packet arrives
    std::size_t bytes = 0;
    std::vector<std::byte> body;  ///< of messages and `got`

    std::size_t wire_bytes() const noexcept { return 64 + (kind == Kind::get ? 0 : bytes); }
};

/// Outlives the providers on it. Thread: those of its scheduler.
class Network {
public:
    Network(Scheduler& scheduler, std::uint32_t nodes, const NetworkOptions& options);
    Network(const Network&) = delete;
    ~Network();

    Scheduler& scheduler() noexcept { return scheduler_; }
    const NetworkOptions& options() const noexcept { return options_; }
    std::uint32_t nodes() const noexcept { return static_cast<std::uint32_t>(providers_.size()); }

    // --- what a test does to it ------------------------------------------------------------------

    /// Cuts or mends the wire between two nodes, both ways.
    void cut(NodeId a, NodeId b, bool is_cut);
    /// The node stops for good, its packets with it. Others notice by silence, or are told
    /// (Provider::peer_lost()).
    void crash(NodeId node);

    struct Counts {
        std::uint64_t packets = 0, sent = 0, lost = 0, doubled = 0, held_back = 0, resent = 0,
                      dropped = 0;  ///< because the card had seen them before
    };
    const Counts& counts() const noexcept { return counts_; }
    /// The counts of one card: packets without those it sent again or had seen before.
    struct CardCounts {
        std::uint64_t sent = 0, received = 0, bytes_sent = 0;
    };
    const CardCounts& counts_of(NodeId node) const noexcept { return cards_[node.value]; }

    // --- for providers ---------------------------------------------------------------------------

    /// The node's card is `provider`'s from now on; returns its life, counted from 1. Providers of
    /// one job attach together, so equal lives are one job: what is under way from an earlier one
    /// reaches nobody.
    std::uint32_t attach(NodeId node, SimProvider& provider);
    /// `provider` takes packets no more; its successor may be attached already.
    void detach(NodeId node, const SimProvider& provider);
    SimProvider* provider(NodeId node) noexcept { return providers_[node.value]; }
    /// Brings `packet` to the card of packet->to, once, some time from now.
    void send(std::unique_ptr<Packet> packet);
    /// A message of packet.from was delivered at packet.to: there is room for another.
    void message_read(const Packet& packet);
    /// Nothing of `from`, in its `life`, reaches `to` any more.
    void forget(NodeId from, NodeId to, std::uint32_t life);

private:
    /// One direction between two cards.
    struct Link {
        std::uint64_t next_sequence = 1, next_order = 1;
        std::uint64_t executed_below = 1;  ///< all sequences below were executed
        std::set<std::uint64_t> executed;  ///< and these
        std::uint64_t deliver_order = 1;   ///< of the next message
        std::unordered_map<std::uint64_t, std::unique_ptr<Packet>> early;  ///< by order
        std::uint32_t life = 0;  ///< of the sender; all but `cut` is as new for each
        bool cut = false, dead = false;
    };
    static std::uint64_t pair(NodeId from, NodeId to) noexcept {
        return std::uint64_t{from.value} << 32 | to.value;
    }
    Link& link(NodeId from, NodeId to) { return links_[pair(from, to)]; }
    Link& link_of_life(NodeId from, NodeId to, std::uint32_t life);
    void transmit(std::uint32_t slot);
    std::uint64_t way_ns(const Packet& packet);
    void arrive(std::uint32_t slot);
    void execute(Link& link, std::uint32_t slot);
    void give_back(std::uint32_t slot);
    bool first_time(Link& link, std::uint64_t sequence);
    void event_at(std::uint64_t time_ns, std::uint32_t slot, Scheduler::Fire fire);
    Packet* packet_of(std::uint64_t argument) noexcept;

    /// Packets under way; events name a slot and its use.
    struct Slot {
        std::unique_ptr<Packet> packet;
        std::uint32_t uses = 0;
    };
    Scheduler& scheduler_;
    NetworkOptions options_;
    std::vector<SimProvider*> providers_;
    std::vector<std::uint32_t> lives_;          ///< of each node's provider
    std::vector<std::uint64_t> busy_until_ns_;  ///< of each card's way out
    std::vector<bool> crashed_;
    std::unordered_map<std::uint64_t, Link> links_;  ///< never walked through: no order
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_slots_;
    Counts counts_;
    std::vector<CardCounts> cards_;
};

}  // namespace hiroba::net::sim
