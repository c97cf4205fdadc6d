// SPDX-License-Identifier: BSD-3-Clause
// Role: see gas.hpp; registration, and access where nothing is mapped.
#include "gas/gas.hpp"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/thread_context.hpp"

namespace hiroba::gas {

Result<Segment> Segment::allocate(net::Endpoint& endpoint, std::size_t bytes,
                                  bool processor_atomics) {
    Result<net::RegionId> region = endpoint.provider().allocate(bytes);
    if (!region) return region.error();
    if (processor_atomics) endpoint.provider().processor_atomics(*region);
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
    if (endpoint_->provider().limits().pins_memory) {
        std::memset(from, 0, bytes);
        return;
    }
    if (madvise(from, bytes, MADV_REMOVE) == 0) return;
    HIROBA_INVARIANT(errno == EINVAL && madvise(from, bytes, MADV_DONTNEED) == 0,
                     "madvise of %lu bytes at %p: errno %d", static_cast<unsigned long>(bytes),
                     static_cast<void*>(from), errno);
}

// The thread that polls stores the answers. The caller's stack may be the program's, which is
// global memory: another thread's store to it would count as the program's write. So what an
// operation brings lands on the runtime stack.

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

void Segment::one_by_one(NodeId node, std::span<Access> accesses) noexcept {
    for (Access& access : accesses) {
        const GlobalAddress at{node, access.offset};
        switch (access.kind) {
            case Access::Kind::get: access.segment.get(at, {access.memory, access.bytes}); break;
            case Access::Kind::put: access.segment.put(at, {access.memory, access.bytes}); break;
            case Access::Kind::store: access.found = access.segment.swap(at, access.value); break;
            case Access::Kind::compare_swap:
                access.found = access.segment.compare_swap(at, access.expected, access.value);
                break;
            case Access::Kind::fetch_or:
                access.found = access.segment.fetch_or(at, access.value);
                break;
        }
        // The next is read after this.
        std::atomic_thread_fence(std::memory_order_acquire);
    }
}

void Segment::make_work(NodeId node, const Access& access, net::Work& work,
                        std::uint64_t& found) noexcept {
    work.kind = access.kind == Access::Kind::get   ? net::Work::Kind::get
                : access.kind == Access::Kind::put ? net::Work::Kind::put
                                                   : net::Work::Kind::atomic;
    work.op = access.kind == Access::Kind::store      ? net::AtomicOp::swap
              : access.kind == Access::Kind::fetch_or ? net::AtomicOp::fetch_or
                                                      : net::AtomicOp::compare_swap;
    work.peer = node;
    work.region = access.segment.region_;
    work.offset = access.offset;
    work.memory = access.memory;
    work.bytes = access.bytes;
    work.operand = access.value;
    work.expected = access.expected;
    work.old = &found;
}

void Segment::in_order(NodeId node, std::span<Access> accesses) noexcept {
    if (!accesses[0].segment.in_one_exchange(node)) return one_by_one(node, accesses);
    on_runtime_stack([&] {
        std::array<net::Work, accesses_max> list;
        std::array<std::uint64_t, accesses_max> found{};
        for (std::size_t i = 0; i < accesses.size(); ++i)
            make_work(node, accesses[i], list[i], found[i]);
        accesses[0].segment.endpoint_->complete_all(std::span(list).first(accesses.size()));
        for (std::size_t i = 0; i < accesses.size(); ++i) accesses[i].found = found[i];
    });
}

void Segment::together(std::span<const List> lists) noexcept {
    on_runtime_stack([&] {
        std::array<net::Work, net::Endpoint::list_max> all;
        std::array<std::uint64_t, net::Endpoint::list_max> found{};
        std::size_t count = 0;
        net::Endpoint* endpoint = nullptr;
        for (const List& list : lists) {
            if (!list.accesses[0].segment.in_one_exchange(list.node)) {
                one_by_one(list.node, list.accesses);
                continue;
            }
            endpoint = list.accesses[0].segment.endpoint_;
            HIROBA_INVARIANT(count + list.accesses.size() <= all.size(), "%lu accesses together",
                             count + list.accesses.size());
            for (const Access& access : list.accesses) {
                make_work(list.node, access, all[count], found[count]);
                ++count;
            }
        }
        if (count == 0) return;
        endpoint->complete_all(std::span(all).first(count));
        count = 0;
        for (const List& list : lists) {
            if (!list.accesses[0].segment.in_one_exchange(list.node)) continue;
            for (Access& access : list.accesses) access.found = found[count++];
        }
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
