// SPDX-License-Identifier: BSD-3-Clause
// Role: see gas.hpp; registration, and access where nothing is mapped.
#include "gas/gas.hpp"

#include "base/thread_context.hpp"

namespace hiroba::gas {

Result<Segment> Segment::allocate(net::Endpoint& endpoint, std::size_t bytes) {
    Result<net::RegionId> region = endpoint.provider().allocate(bytes);
    if (!region) return region.error();
    Segment segment;
    segment.endpoint_ = &endpoint;
    segment.region_ = *region;
    segment.bytes_ = bytes;
    return segment;
}

void Segment::attach() {
    net::Provider& provider = endpoint_->provider();
    const MutableBytes local = provider.local(region_);
    HIROBA_INVARIANT(local.size() == bytes_, "region %u has %lu bytes, registered were %lu",
                     region_.value, local.size(), bytes_);
    local_ = local.data();
    nodes_ = endpoint_->nodes();
    bases_.clear();
    if (!provider.limits().maps_peers) return;
    bases_.resize(nodes_, nullptr);
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
        bases_[rank] = provider.mapped(NodeId{rank}, region_);
    }
}

// Whoever polls stores the answers, and the caller's stack may be the program's, that is global
// memory: a store by another thread at any time would be the program's to the memory above. So what
// an operation brings lands on the runtime stack.

void Segment::get_posted(GlobalAddress from, MutableBytes to) noexcept {
    if (to.empty()) return;
    on_runtime_stack([&] {
        endpoint_->complete([&](net::OpId id) {
            return endpoint_->provider().get(id, to, from.node, region_, from.offset);
        });
    });
}

void Segment::put_posted(GlobalAddress to, Bytes from) noexcept {
    if (from.empty()) return;
    on_runtime_stack([&] {
        endpoint_->complete([&](net::OpId id) {
            return endpoint_->provider().put(id, to.node, region_, to.offset, from);
        });
    });
}

std::uint64_t Segment::atomic_posted(net::AtomicOp op, GlobalAddress at, std::uint64_t operand,
                                     std::uint64_t expected) noexcept {
    std::uint64_t found = 0;
    on_runtime_stack([&] {
        std::uint64_t old = 0;
        endpoint_->complete([&](net::OpId id) {
            return endpoint_->provider().atomic(id, op, at.node, region_, at.offset, operand,
                                                expected, &old);
        });
        found = old;
    });
    return found;
}

}  // namespace hiroba::gas
