// SPDX-License-Identifier: BSD-3-Clause
// Role: for unit tests, a provider that moves nothing; a test overrides what it looks at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/provider/provider.hpp"

namespace hiroba::net::test {

class IdleProvider : public Provider {
public:
    explicit IdleProvider(const Limits& limits) : limits_(limits) {}
    const Limits& limits() const noexcept override { return limits_; }
    Result<RegionId> allocate(std::size_t) override { return RegionId{}; }
    MutableBytes local(RegionId) noexcept override { return {}; }
    std::byte* mapped(NodeId, RegionId) noexcept override { return nullptr; }
    Result<void> connect() override { return {}; }
    Post send(NodeId, MessageKind, Urgency, std::span<const Bytes>) noexcept override {
        return Post::done;
    }
    Post put(OpId, NodeId, RegionId, std::uint64_t, Bytes) noexcept override { return Post::done; }
    Post get(OpId, MutableBytes, NodeId, RegionId, std::uint64_t) noexcept override {
        return Post::done;
    }
    Post atomic(OpId, AtomicOp, NodeId, RegionId, std::uint64_t, std::uint64_t, std::uint64_t,
                std::uint64_t*) noexcept override {
        return Post::done;
    }
    std::size_t poll(Arrivals&, std::size_t) noexcept override { return 0; }
    void sleep(Sleeper, std::uint64_t, bool (*)(void*), void*) noexcept override {}
    void wake(NodeId, Sleeper) noexcept override {}

private:
    Limits limits_;
};

}  // namespace hiroba::net::test
