// SPDX-License-Identifier: BSD-3-Clause
// Role: see gas.hpp; registration, and access where nothing is mapped.
#include "gas/gas.hpp"

#include <sys/mman.h>

#include <array>
#include <cerrno>

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

// Memory that peers map is a file's, which gives its pages back; the other sort is this process's
// own, and refuses that with EINVAL.
void Segment::discard(std::uint64_t offset, std::size_t bytes) noexcept {
    HIROBA_INVARIANT(offset <= bytes_ && bytes <= bytes_ - offset,
                     "%lu bytes at offset %lu of a segment of %lu",
                     static_cast<unsigned long>(bytes), static_cast<unsigned long>(offset), bytes_);
    std::byte* const from = local_ + offset;
    if (madvise(from, bytes, MADV_REMOVE) == 0) return;
    HIROBA_INVARIANT(errno == EINVAL && madvise(from, bytes, MADV_DONTNEED) == 0,
                     "madvise of %lu bytes at %p: errno %d", static_cast<unsigned long>(bytes),
                     static_cast<void*>(from), errno);
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

void Segment::get_in_order(NodeId node, std::span<const Part> parts) noexcept {
    net::Endpoint& endpoint = *parts[0].segment.endpoint_;
    const bool together = endpoint.provider().limits().gets_in_order &&
                          parts[0].segment.mapped({node, 0}, 0) == nullptr;
    if (!together) {
        for (const Part& part : parts) {
            part.segment.get({node, part.offset}, part.to);
            // The next is read after this.
            std::atomic_thread_fence(std::memory_order_acquire);
        }
        return;
    }
    std::array<net::Work, net::Endpoint::list_max> list;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        list[i].kind = net::Work::Kind::get;
        list[i].peer = node;
        list[i].region = parts[i].segment.region_;
        list[i].offset = parts[i].offset;
        list[i].memory = parts[i].to.data();
        list[i].bytes = parts[i].to.size();
    }
    on_runtime_stack([&] { endpoint.complete_all(std::span(list).first(parts.size())); });
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
