// SPDX-License-Identifier: BSD-3-Clause
// Role: a provider that says it maps nothing, over one that may: and has no
// kicks of its own, over one that may: so that they go as messages. Invariant: everything else is
// the other's.
#pragma once

#include <memory>
#include <utility>

#include "net/provider/provider.hpp"

namespace hiroba::conformance {

class UnmappedProvider final : public net::Provider {
public:
    explicit UnmappedProvider(std::unique_ptr<net::Provider> over)
        : over_(std::move(over)), limits_(over_->limits()) {
        limits_.maps_peers = false;
    }
    const net::Limits& limits() const noexcept override { return limits_; }
    Result<net::RegionId> allocate(std::size_t bytes) override { return over_->allocate(bytes); }
    MutableBytes local(net::RegionId region) noexcept override { return over_->local(region); }
    std::byte* mapped(NodeId, net::RegionId) noexcept override { return nullptr; }
    Result<void> connect() override { return over_->connect(); }
    net::Post send(NodeId to, net::MessageKind kind, net::Urgency urgency,
                   std::span<const Bytes> parts) noexcept override {
        return over_->send(to, kind, urgency, parts);
    }
    net::Post put(net::OpId id, NodeId to, net::RegionId region, std::uint64_t offset,
                  Bytes from) noexcept override {
        return over_->put(id, to, region, offset, from);
    }
    net::Post get(net::OpId id, MutableBytes to, NodeId from, net::RegionId region,
                  std::uint64_t offset) noexcept override {
        return over_->get(id, to, from, region, offset);
    }
    net::Post atomic(net::OpId id, net::AtomicOp op, NodeId at, net::RegionId region,
                     std::uint64_t offset, std::uint64_t operand, std::uint64_t expected,
                     std::uint64_t* old) noexcept override {
        return over_->atomic(id, op, at, region, offset, operand, expected, old);
    }
    void peer_lost(NodeId peer) noexcept override { over_->peer_lost(peer); }
    bool drained() noexcept override { return over_->drained(); }
    std::size_t poll(net::Arrivals& arrivals, std::size_t count_max) noexcept override {
        return over_->poll(arrivals, count_max);
    }
    void sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept override {
        over_->sleep(role, timeout_ns, ready, argument);
    }
    void wake(NodeId node, Sleeper role) noexcept override { over_->wake(node, role); }

private:
    std::unique_ptr<net::Provider> over_;
    net::Limits limits_;
};

}  // namespace hiroba::conformance
