// SPDX-License-Identifier: BSD-3-Clause
// Role: see shm_provider.hpp. First how nodes meet, then one-sided access, then messages, then
// sleep.
#include "net/provider/shm/shm_provider.hpp"

#include <atomic>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/fatal.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/checks.hpp"
#include "net/provider/shm/doorbell.hpp"
#include "net/wire/address_card.hpp"

namespace hiroba::net::shm {
namespace {

constexpr Limits shm_limits{.name = "shm",
                            .message_bytes_max = shm::message_bytes_max,
                            .completes_inline = true,
                            .parallel = true,
                            .maps_peers = true,
                            .queue_pairs = 16};  // each copy is by itself

}  // namespace

Result<std::unique_ptr<Provider>> make_shm_provider(ProviderSetup setup) {
    if (auto checked = check_rank(setup); !checked) return checked.error();
    return std::unique_ptr<Provider>(std::make_unique<ShmProvider>(std::move(setup)));
}

ShmProvider::ShmProvider(ProviderSetup setup)
    : setup_(std::move(setup)), memory_bytes_(regions_offset(setup_.nodes)) {}

const Limits& ShmProvider::limits() const noexcept { return shm_limits; }

// --- meeting -------------------------------------------------------------------------------------

Result<RegionId> ShmProvider::allocate(std::size_t bytes) {
    constexpr std::size_t memory_bytes_max = std::size_t{1}
                                             << 46;  // a quarter of the address space
    HIROBA_INVARIANT(peers_.empty(), "region of %lu bytes allocated after connect()", bytes);
    if (bytes > memory_bytes_max - memory_bytes_) {
        return refused(setup_.self,
                       "a region of " + std::to_string(bytes) + " bytes beside " +
                           std::to_string(memory_bytes_) +
                           " does not fit the address space; lower HIROBA_HEAP or HIROBA_GAS");
    }
    regions_.push_back({memory_bytes_, bytes});
    memory_bytes_ += round_up(bytes, page_bytes);
    return RegionId{static_cast<std::uint32_t>(regions_.size() - 1)};
}

Result<void> ShmProvider::connect() {
    HIROBA_INVARIANT(peers_.empty(), "connect() called twice on node %u", setup_.self.value);
    Result<Descriptor> memory = create_memory(memory_bytes_);
    if (!memory) return memory.error();
    Result<Mapping> own = Mapping::of(memory->fd(), memory_bytes_);
    if (!own) return own.error();

    std::byte* start = own->start();
    ::new (start) ControlPage;
    for (std::uint32_t sender = 0; sender < setup_.nodes; ++sender) {
        ::new (start + ring_control_offset(sender)) RingControl;
    }
    std::vector<Peer> peers(setup_.nodes);
    peers_.swap(peers);
    Peer& self = peer(setup_.self);
    self.mapping = std::move(*own);
    self.start = start;

    if (setup_.nodes > 1) {
        if (Result<void> met = meet_peers(std::move(*memory)); !met) return met;
    }
    open_queues();
    return {};
}

Result<void> ShmProvider::meet_peers(Descriptor memory) {
    wire::AddressCard mine{.version = layout_version,
                           .job_key = setup_.job_key,
                           .node = setup_.self.value,
                           .nodes = setup_.nodes};
    for (const RegionPlace& region : regions_) wire::add_region(mine, region.bytes);
    mine.memory_bytes = memory_bytes_;
    const wire::AddressCardBytes card = wire::encode_address_card(mine);
    Result<ControlChannel::Gathered> gathered = setup_.exchange(card, memory.fd());
    if (!gathered) return gathered.error();
    std::vector<Descriptor> descriptors;
    for (const int fd : gathered->fds) descriptors.emplace_back(fd);
    if (gathered->bytes.size() != setup_.nodes || descriptors.size() != setup_.nodes) {
        return refused(setup_.self, std::to_string(gathered->bytes.size()) + " nodes and " +
                                        std::to_string(descriptors.size()) +
                                        " memories met in a job of " +
                                        std::to_string(setup_.nodes));
    }

    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        wire::AddressCard theirs;
        if (!wire::decode_address_card(gathered->bytes[rank], theirs)) {
            return refused(setup_.self, "node " + std::to_string(rank) + " sent " +
                                            std::to_string(gathered->bytes[rank].size()) +
                                            " bytes instead of its address");
        }
        if (std::string text = wire::card_difference(mine, theirs, rank); !text.empty()) {
            return refused(setup_.self, "node " + std::to_string(rank) + " has " + text);
        }
        if (rank == setup_.self.value) continue;
        Result<Mapping> mapping = Mapping::of(descriptors[rank].fd(), memory_bytes_);
        if (!mapping) return mapping.error();
        peers_[rank].mapping = std::move(*mapping);
        peers_[rank].start = peers_[rank].mapping.start();
    }
    return {};
}

void ShmProvider::open_queues() noexcept {
    const auto ring_of = [](std::byte* start, std::uint32_t sender) {
        return std::launder(reinterpret_cast<RingControl*>(start + ring_control_offset(sender)));
    };
    std::byte* own = peer(setup_.self).start;
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        Peer& peer = peers_[rank];
        peer.outgoing = RingWriter{ring_of(peer.start, setup_.self.value),
                                   peer.start + ring_data_offset(setup_.self.value)};
        peer.incoming = RingReader{ring_of(own, rank), own + ring_data_offset(rank), NodeId{rank}};
    }
}

ShmProvider::Peer& ShmProvider::peer(NodeId node) noexcept {
    HIROBA_INVARIANT(node.value < peers_.size(), "node %u of %lu connected nodes", node.value,
                     peers_.size());
    return peers_[node.value];
}

ControlPage& ShmProvider::control(NodeId node) noexcept {
    return *std::launder(reinterpret_cast<ControlPage*>(peer(node).start));
}

// --- one-sided access ----------------------------------------------------------------------------

MutableBytes ShmProvider::local(RegionId region) noexcept {
    std::byte* start = mapped(setup_.self, region);
    return {start, regions_[region.value].bytes};
}

std::byte* ShmProvider::mapped(NodeId node, RegionId region) noexcept {
    return place(node, region, 0, 0);
}

std::byte* ShmProvider::place(NodeId node, RegionId region, std::uint64_t offset,
                              std::size_t bytes) noexcept {
    const RegionPlace& place = region_with(regions_, region, offset, bytes);
    return peer(node).start + place.offset + offset;
}

Post ShmProvider::put(OpId, NodeId to, RegionId region, std::uint64_t offset, Bytes from) noexcept {
    std::byte* target = place(to, region, offset, from.size());
    if (!from.empty()) std::memcpy(target, from.data(), from.size());
    return Post::done;
}

Post ShmProvider::get(OpId, MutableBytes to, NodeId from, RegionId region,
                      std::uint64_t offset) noexcept {
    const std::byte* source = place(from, region, offset, to.size());
    if (!to.empty()) std::memcpy(to.data(), source, to.size());
    return Post::done;
}

Post ShmProvider::atomic(OpId, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                         std::uint64_t operand, std::uint64_t expected,
                         std::uint64_t* old) noexcept {
    HIROBA_INVARIANT((offset & 7) == 0, "atomic at offset %lu of region %u", offset, region.value);
    auto* word = reinterpret_cast<std::uint64_t*>(place(at, region, offset, 8));
    *old = apply_atomic(std::atomic_ref<std::uint64_t>(*word), op, operand, expected);
    return Post::done;
}

void ShmProvider::peer_lost(NodeId node) noexcept {
    // Its memory stays mapped, so operations on it still complete.
    peer(node).lost.store(true, std::memory_order_relaxed);  // send() asks again and again
    wake(setup_.self, Sleeper::waiter);
    wake(setup_.self, Sleeper::service);
}

// --- messages ------------------------------------------------------------------------------------

Post ShmProvider::send(NodeId to, MessageKind kind, Urgency urgency,
                       std::span<const Bytes> parts) noexcept {
    std::size_t bytes = 0;
    for (const Bytes part : parts) bytes += part.size();
    HIROBA_INVARIANT(bytes <= shm::message_bytes_max,
                     "message of %lu bytes to node %u, at most %lu", bytes, to.value,
                     shm::message_bytes_max);
    Peer& target = peer(to);
    target.sending.lock();
    const bool written = target.outgoing.write(kind, parts, bytes);
    target.sending.unlock();
    // The queue of a node that died will never have room. Relaxed: a hint by itself.
    if (!written) return target.lost.load(std::memory_order_relaxed) ? Post::done : Post::again;

    ControlPage& theirs = control(to);
    store_fence();  // W1 of doorbell.hpp is the queue's tail
    ring_after_fence(theirs.waiters);
    if (urgency == Urgency::wake_service) ring_after_fence(theirs.service);
    return Post::done;
}

std::size_t ShmProvider::poll(Arrivals& arrivals, std::size_t count_max) noexcept {
    // Begins with another sender each time, so that count_max cuts off no one for ever.
    const std::size_t nodes = peers_.size();
    std::size_t count = 0;
    for (std::size_t i = 0; i < nodes && count < count_max; ++i) {
        const std::size_t rank =
            next_polled_ + i < nodes ? next_polled_ + i : next_polled_ + i - nodes;
        RingReader& incoming = peers_[rank].incoming;
        if (incoming.has_work()) count += incoming.read(arrivals, count_max - count);
    }
    next_polled_ = next_polled_ + 1 < nodes ? next_polled_ + 1 : 0;
    return count;
}

// --- sleep ---------------------------------------------------------------------------------------

Bell& ShmProvider::bell(NodeId node, Sleeper role) noexcept {
    ControlPage& page = control(node);
    return role == Sleeper::waiter ? page.waiters : page.service;
}

bool ShmProvider::anything_arrived() const noexcept {
    for (const Peer& peer : peers_) {
        if (!peer.incoming.empty()) return true;
    }
    return false;
}

void ShmProvider::sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
                        void* argument) noexcept {
    // Undelivered messages keep every role awake: whoever was polling may have stopped with the
    // rest of its batch still in the queue.
    struct Waiter {
        ShmProvider* self;
        bool (*ready)(void*);
        void* argument;
    } waiter{this, ready, argument};
    sleep_at(
        bell(setup_.self, role), timeout_ns,
        [](void* opaque) {
            const Waiter& waiter = *static_cast<Waiter*>(opaque);
            return waiter.ready(waiter.argument) || waiter.self->anything_arrived();
        },
        &waiter);
}

void ShmProvider::wake(NodeId node, Sleeper role) noexcept { ring(bell(node, role)); }

}  // namespace hiroba::net::shm
