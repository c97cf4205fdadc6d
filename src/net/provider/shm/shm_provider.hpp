// SPDX-License-Identifier: BSD-3-Clause
// Role: the provider between processes of one host: registered memory is mapped by every node, so
// puts, gets and atomics are the CPU's own; messages go through queues in the receiver's memory.
// Invariant: nothing blocks but connect() and sleep(); nothing allocates after connect(). A node is
// one writer of a peer's queue, so its threads take turns by a latch in private memory.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/latch.hpp"
#include "net/provider/address_exchange.hpp"
#include "net/provider/provider.hpp"
#include "net/provider/shm/mapping.hpp"
#include "net/provider/shm/ring.hpp"

namespace hiroba::net::shm {

class ShmProvider final : public Provider {
public:
    explicit ShmProvider(ProviderSetup setup);

    const Limits& limits() const noexcept override;
    Result<RegionId> allocate(std::size_t bytes) override;
    MutableBytes local(RegionId region) noexcept override;
    std::byte* mapped(NodeId node, RegionId region) noexcept override;
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

private:
    struct RegionPlace {
        std::size_t offset = 0;  ///< in every node's memory
        std::size_t bytes = 0;   ///< as asked for
    };
    /// One peer (or this node itself), seen from here.
    struct alignas(cache_line_bytes) Peer {
        Latch sending;        ///< whose holder may write
        RingWriter outgoing;  ///< in the peer's memory
        RingReader incoming;  ///< in this node's memory
        std::byte* start = nullptr;
        std::atomic<bool> lost{false};
        Mapping mapping;
    };

    Result<void> meet_peers(Descriptor memory);
    void open_queues() noexcept;
    ControlPage& control(NodeId node) noexcept;
    Bell& bell(NodeId node, Sleeper role) noexcept;
    Peer& peer(NodeId node) noexcept;
    std::byte* place(NodeId node, RegionId region, std::uint64_t offset,
                     std::size_t bytes) noexcept;
    bool anything_arrived() const noexcept;

    ProviderSetup setup_;
    std::vector<RegionPlace> regions_;
    std::size_t memory_bytes_;
    std::vector<Peer> peers_;      ///< empty before connect()
    std::size_t next_polled_ = 0;  ///< progress role: where the next poll begins
};

/// As ProviderSetup says; refuses a rank outside the job.
Result<std::unique_ptr<Provider>> make_shm_provider(ProviderSetup setup);

}  // namespace hiroba::net::shm
