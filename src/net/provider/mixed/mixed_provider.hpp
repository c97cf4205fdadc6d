// SPDX-License-Identifier: BSD-3-Clause
// Role: two providers in one job: a near one between nodes of one host, a far one to the others.
// Invariant: every region is the near provider's memory, which the far one serves as well; every
// pair of nodes talks through one provider alone, so that messages between them keep their order.
// A node alone on its host has the far one only, a job on one host the near one only.
// The near provider numbers the nodes of this host from 0; nobody outside this folder sees that.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "net/provider/address_exchange.hpp"
#include "net/provider/listener.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net::mixed {

using Maker = std::function<Result<std::unique_ptr<Provider>>(ProviderSetup)>;

/// @param near  its connect() exchanges near_card_bytes once, unless it is alone
struct Parts {
    Maker near{}, far{};
    std::size_t near_card_bytes = 0;
    bool lists_in_order = false, pins_memory = false, gathers = false;  ///< of the far one's Limits
    std::uint64_t host = 0;                                             ///< of this node
};

class MixedProvider final : public Provider {
public:
    MixedProvider(ProviderSetup setup, Parts parts);
    ~MixedProvider() override;

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
    std::size_t post(std::span<Work> list) noexcept override;
    std::size_t post_with_next(std::span<Work> list, bool waits) noexcept override;
    bool prepare(PreparedKick& kick) noexcept override;
    Post kick(const PreparedKick& kick, std::uint32_t offset, std::uint64_t value,
              bool more) noexcept override;
    void peer_lost(NodeId peer) noexcept override;
    bool drained() noexcept override;

    std::size_t poll(Arrivals& arrivals, std::size_t count_max) noexcept override;
    void sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept override;
    void wake(NodeId node, Sleeper role) noexcept override;

private:
    /// Calls `post_far` with each run of works for far peers.
    template <class PostFar>
    std::size_t post_runs(std::span<Work> list, PostFar&& post_far) noexcept;
    static constexpr std::uint32_t not_near = ~std::uint32_t{0};
    struct Way {
        Provider* provider;
        NodeId node;  ///< its number there
    };
    Way way_to(NodeId node) const noexcept;
    Result<void> find_hosts();
    Result<void> make_parts();
    Result<void> make_near();
    bool is_lone() const noexcept { return near_nodes_.size() == 1 && setup_.nodes > 1; }
    /// The provider whose memory the regions are, and where this node's threads sleep.
    Provider& own() noexcept { return near_ != nullptr ? *near_ : *far_; }

    ProviderSetup setup_;
    Parts parts_;
    Limits limits_;
    std::vector<std::size_t> region_bytes_;
    std::vector<std::uint32_t> near_rank_;  ///< by node; not_near
    std::vector<NodeId> near_nodes_;        ///< the reverse
    std::unique_ptr<Provider> near_, far_;  ///< nullptr: nobody else is near; nobody is far
    std::atomic<bool> connected_{false};
    Listener listener_;  ///< at the far one, where there is a near one too
};

}  // namespace hiroba::net::mixed
