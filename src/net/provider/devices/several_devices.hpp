// SPDX-License-Identifier: BSD-3-Clause
// Role: one provider with all that a job does, and further devices beside it, each of which carries
// the messages of one kind. Source: ACP basic layer, section 4.3: a color is a network interface.
// Invariant: between two nodes messages of one kind keep their order; of two kinds nothing is
// promised. Memory, one-sided access, kicks and sleep are the first provider's. Peers whose memory
// is mapped are reached by that alone: no device leads to them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/provider/address_exchange.hpp"
#include "net/provider/listener.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net::devices {

using Maker = std::function<Result<std::unique_ptr<Provider>>(ProviderSetup)>;

/// A device and the messages it carries.
struct Lane {
    MessageKind kind{};
    ProviderSetup setup;
};

class SeveralDevices final : public Provider {
public:
    /// @param first  not connected
    /// @param self  of this node in both
    /// @param make  makes the provider of a lane
    SeveralDevices(std::unique_ptr<Provider> first, NodeId self, std::vector<Lane> lanes,
                   Maker make);
    ~SeveralDevices() override;

    const Limits& limits() const noexcept override { return limits_; }
    Result<RegionId> allocate(std::size_t bytes) override { return first_->allocate(bytes); }
    void processor_atomics(RegionId region) noexcept override { first_->processor_atomics(region); }
    MutableBytes local(RegionId region) noexcept override { return first_->local(region); }
    std::byte* mapped(NodeId node, RegionId region) noexcept override {
        return first_->mapped(node, region);
    }
    Result<void> connect() override;

    Post send(NodeId to, MessageKind kind, Urgency urgency,
              std::span<const Bytes> parts) noexcept override;
    Post put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
             Bytes from) noexcept override {
        return first_->put(id, to, region, offset, from);
    }
    Post get(OpId id, MutableBytes to, NodeId from, RegionId region,
             std::uint64_t offset) noexcept override {
        return first_->get(id, to, from, region, offset);
    }
    Post atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                std::uint64_t operand, std::uint64_t expected,
                std::uint64_t* old) noexcept override {
        return first_->atomic(id, op, at, region, offset, operand, expected, old);
    }
    std::size_t post(std::span<Work> list) noexcept override;
    std::size_t post_with_next(std::span<Work> list, bool waits) noexcept override;
    const std::atomic<std::uint32_t>* requests_under_way() const noexcept override {
        return first_->requests_under_way();
    }
    bool prepare(PreparedKick& kick) noexcept override { return first_->prepare(kick); }
    Post kick(const PreparedKick& kick, std::uint32_t offset, std::uint64_t value,
              bool more) noexcept override {
        return first_->kick(kick, offset, value, more);
    }
    void peer_lost(NodeId peer) noexcept override;
    bool drained() noexcept override;

    std::size_t poll(Arrivals& arrivals, std::size_t count_max) noexcept override;
    std::size_t poll_own(Arrivals& arrivals, std::size_t count_max) noexcept override {
        return first_->poll_own(arrivals, count_max);
    }
    void sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
               void* argument) noexcept override {
        first_->sleep(role, timeout_ns, ready, argument);
    }
    void wake(NodeId node, Sleeper role) noexcept override { first_->wake(node, role); }

private:
    struct Device {
        Lane lane;
        std::unique_ptr<Provider> provider;
        Listener listener;
    };
    Device* device_of(MessageKind kind) noexcept;
    bool all_are_of_first(std::span<const Work> list) noexcept;

    std::unique_ptr<Provider> first_;
    NodeId self_;
    Maker make_;
    Limits limits_;
    std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace hiroba::net::devices
