// SPDX-License-Identifier: BSD-3-Clause
// Role: the provider between simulated nodes of one process, over sim/network.hpp.
// Invariant: what peers ask of this node's memory its card carries out, without its threads. Spans
// handed in are read or written when packets arrive, so that whoever takes them back too early is
// found out.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "net/provider/address_exchange.hpp"
#include "net/provider/provider.hpp"
#include "net/provider/sim/network.hpp"

namespace hiroba::net::sim {

/// Thread: those of the network's scheduler; with Calls::one_thread one at a time.
class SimProvider final : public Provider {
public:
    /// @param setup  its exchange() may park the calling thread
    SimProvider(Network& network, ProviderSetup setup);
    ~SimProvider() override;

    const Limits& limits() const noexcept override { return limits_; }
    Result<RegionId> allocate(std::size_t bytes) override;
    MutableBytes local(RegionId region) noexcept override;
    std::byte* mapped(NodeId, RegionId) noexcept override { return nullptr; }
    Result<void> connect() override;

    Post send(NodeId to, MessageKind kind, Urgency urgency,
              std::span<const Bytes> parts) noexcept override;
    Post put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
             Bytes from) noexcept override;
    Post get(OpId id, MutableBytes to, NodeId from, RegionId region,
             std::uint64_t offset) noexcept override;
    Post atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                std::uint64_t operand, std::uint64_t expected,
                std::uint64_t* old) noexcept override;
    void peer_lost(NodeId peer) noexcept override;

    std::size_t poll(Arrivals& arrivals, std::size_t count_max) noexcept override;
    void sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept override;
    void wake(NodeId node, Sleeper role) noexcept override;

    /// How often a thread of this node slept.
    std::uint64_t sleeps() const noexcept { return sleeps_; }

    // --- by the network --------------------------------------------------------------------------

    void take(const Packet& packet);
    void take_message(std::unique_ptr<Packet> packet);
    /// `to` has read a message of this node.
    void message_was_read(NodeId to, std::size_t wire_bytes) noexcept;
    /// Nothing has got through to `peer` for too long.
    void fell_silent(NodeId peer);

private:
    struct Region {
        std::byte* start = nullptr;
        std::size_t bytes = 0;
    };
    struct Operation {
        OpId id;
        NodeId peer;
        std::byte* memory = nullptr;  ///< where a get or an atomic's old value goes
        std::uint32_t parts = 0;      ///< still under way; 0: free
        std::uint64_t generation = 0;
    };
    struct Finished {
        OpId id;
        NodeId peer;
        bool failed = false;
    };
    /// What is kept of a node that this one has sent a message to, or lost.
    struct Peer {
        std::size_t bytes_under_way = 0;
        bool lost = false;
    };
    /// Room that messages have left in the queue to a peer.
    struct Credit {
        NodeId peer;
        std::size_t bytes = 0;
    };
    /// A call into the card.
    class Entry;

    Result<void> meet();
    std::byte* place(NodeId node, RegionId region, std::uint64_t offset,
                     std::size_t bytes) noexcept;
    std::byte* place_at(NodeId node, RegionId region, std::uint64_t offset,
                        std::size_t bytes) noexcept;
    Operation* new_operation(OpId id, NodeId peer, std::byte* memory, std::size_t parts) noexcept;
    std::unique_ptr<Packet> packet_for(const Operation& operation, Packet::Kind kind) noexcept;
    void post_parts(Operation& operation, Packet::Kind kind, RegionId region, std::uint64_t offset,
                    const std::byte* from, std::size_t bytes) noexcept;
    void answer(const Packet& packet, Packet::Kind kind, std::uint64_t old) noexcept;
    void part_done(const Packet& packet) noexcept;
    void finish(Operation& operation, bool failed) noexcept;
    void lose(NodeId peer) noexcept;
    void ring(Sleeper role) noexcept;
    std::size_t parts_of(std::size_t bytes) const noexcept;
    std::size_t queue_of(NodeId peer) const noexcept { return peer.value % (queues_.size() - 1); }

    Network& network_;
    ProviderSetup setup_;
    Limits limits_;
    std::vector<Region> regions_;
    bool connected_ = false;
    std::uint32_t life_ = 0;  ///< which of the node's providers on this network
    std::vector<Operation> operations_;
    std::vector<std::uint32_t> free_operations_;
    std::unordered_map<std::uint32_t, Peer> peers_;
    std::deque<Finished> finished_;
    std::deque<std::unique_ptr<Packet>> inbox_;
    std::vector<NodeId> silent_;
    std::vector<Credit> credits_;

    struct Bed {
        std::vector<Fiber*> sleepers;
        std::uint64_t rings = 0;
    };
    Bed beds_[2];
    std::uint64_t sleeps_ = 0;
    std::uint32_t empty_polls_ = 0;

    const Fiber* inside_ = nullptr;     ///< of a card that takes one call at a time
    std::vector<const Fiber*> queues_;  ///< who is in each; the last is for completions
};

}  // namespace hiroba::net::sim
