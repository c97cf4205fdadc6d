// SPDX-License-Identifier: BSD-3-Clause
// Role: see sim_provider.hpp.
#include "net/provider/sim/sim_provider.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/fatal.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/checks.hpp"
#include "net/wire/address_card.hpp"

namespace hiroba::net::sim {

namespace {

constexpr std::uint64_t card_version = 1;
constexpr std::size_t message_bytes_max = 65536;

}  // namespace

/// While one lives its thread is in a call, alone in that queue or in the whole card. A
/// handler's own calls, in the middle of poll(), are part of that.
class SimProvider::Entry {
public:
    Entry(SimProvider& provider, std::size_t queue) noexcept {
        Scheduler& scheduler = provider.network_.scheduler();
        const NetworkOptions& options = provider.network_.options();
        const Fiber* const self = &scheduler.running();
        place_ = options.calls == Calls::one_thread ? &provider.inside_ : &provider.queues_[queue];
        if (*place_ == self) {
            place_ = nullptr;
            return;
        }
        HIROBA_INVARIANT(*place_ == nullptr || options.calls != Calls::one_thread,
                         "threads %u and %u are both in the card of node %u, which takes one",
                         (*place_)->index, self->index, provider.setup_.self.value);
        while (*place_ != nullptr) scheduler.pass();
        *place_ = self;
        if (options.call_ns != 0) scheduler.work(options.call_ns);
        if (scheduler.random().happens(options.slow_calls)) scheduler.pass();
    }
    Entry(const Entry&) = delete;
    ~Entry() {
        if (place_ != nullptr) *place_ = nullptr;
    }

private:
    const Fiber** place_;
};

SimProvider::SimProvider(Network& network, ProviderSetup setup)
    : network_(network),
      setup_(std::move(setup)),
      limits_{.name = "sim",
              .message_bytes_max = message_bytes_max,
              .completes_inline = network.options().steps,
              .parallel = network.options().calls == Calls::locked_queues,
              .maps_peers = false},
      queues_(std::max(1u, network.options().queues) + 1, nullptr) {
    HIROBA_INVARIANT(setup_.nodes == network.nodes() && setup_.self.value < setup_.nodes,
                     "node %u of %u on a network of %u", setup_.self.value, setup_.nodes,
                     network.nodes());
}

SimProvider::~SimProvider() {
    if (connected_) network_.detach(setup_.self, *this);
    for (const Region& region : regions_) {
        if (region.start != nullptr) munmap(region.start, round_up(region.bytes, page_bytes));
    }
}

// --- meeting -------------------------------------------------------------------------------------

Result<RegionId> SimProvider::allocate(std::size_t bytes) {
    HIROBA_INVARIANT(!connected_, "region of %lu bytes allocated after connect()", bytes);
    regions_.push_back({nullptr, bytes});
    return RegionId{static_cast<std::uint32_t>(regions_.size() - 1)};
}

Result<void> SimProvider::connect() {
    HIROBA_INVARIANT(!connected_, "connect() called twice on node %u", setup_.self.value);
    for (Region& region : regions_) {
        void* const memory =
            mmap(nullptr, round_up(std::max<std::size_t>(region.bytes, 1), page_bytes),
                 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            return Error{ErrorKind::environment, "mmap of " + std::to_string(region.bytes) +
                                                     " bytes: " + strerror(errno) +
                                                     "; see ulimit -v and vm.max_map_count"};
        }
        region.start = static_cast<std::byte*>(memory);
    }
    if (setup_.nodes > 1) {
        if (auto met = meet(); !met) return met;
    }
    life_ = network_.attach(setup_.self, *this);
    connected_ = true;
    if (setup_.nodes == 1) return {};
    // Waits for all cards: a message to one that is not there would be lost.
    const auto all_there = setup_.exchange({}, -1);
    return all_there ? Result<void>{} : all_there.error();
}

Result<void> SimProvider::meet() {
    wire::AddressCard mine{.version = card_version,
                           .job_key = setup_.job_key,
                           .node = setup_.self.value,
                           .nodes = setup_.nodes};
    for (const Region& region : regions_) wire::add_region(mine, region.bytes);
    const auto gathered = setup_.exchange(wire::encode_address_card(mine), -1);
    if (!gathered) return gathered.error();
    auto all = gathered;
    for (std::uint32_t rank = 0; rank < setup_.nodes; ++rank) {
        wire::AddressCard theirs;
        if (rank >= all->bytes.size() || !wire::decode_address_card(all->bytes[rank], theirs)) {
            return refused(setup_.self, "node " + std::to_string(rank) + " sent no address");
        }
        if (std::string text = wire::card_difference(mine, theirs, rank); !text.empty()) {
            return refused(setup_.self, "node " + std::to_string(rank) + " has " + text);
        }
    }
    return {};
}

// --- one-sided access ----------------------------------------------------------------------------

MutableBytes SimProvider::local(RegionId region) noexcept {
    return {place(setup_.self, region, 0, 0), regions_[region.value].bytes};
}

/// Where the bytes lie here; also checks what lies elsewhere, as regions are equal everywhere.
std::byte* SimProvider::place(NodeId node, RegionId region, std::uint64_t offset,
                              std::size_t bytes) noexcept {
    HIROBA_INVARIANT(node.value < setup_.nodes, "node %u of %u", node.value, setup_.nodes);
    return region_with(regions_, region, offset, bytes).start + offset;
}

/// Where they lie in `node`'s memory.
std::byte* SimProvider::place_at(NodeId node, RegionId region, std::uint64_t offset,
                                 std::size_t bytes) noexcept {
    SimProvider* const peer = network_.provider(node);
    HIROBA_INVARIANT(peer != nullptr, "node %u is not connected", node.value);
    return peer->place(node, region, offset, bytes);
}

std::size_t SimProvider::parts_of(std::size_t bytes) const noexcept {
    const std::size_t part = network_.options().packet_bytes;
    return std::max<std::size_t>(1, (bytes + part - 1) / part);
}

/// nullptr when as many are under way as the card takes.
SimProvider::Operation* SimProvider::new_operation(OpId id, NodeId peer, std::byte* memory,
                                                   std::size_t parts) noexcept {
    if (free_operations_.empty()) {
        if (operations_.size() >= network_.options().operations_max) return nullptr;
        free_operations_.push_back(static_cast<std::uint32_t>(operations_.size()));
        operations_.emplace_back();
    }
    Operation& operation = operations_[free_operations_.back()];
    free_operations_.pop_back();
    operation = {id, peer, memory, static_cast<std::uint32_t>(parts), operation.generation + 1};
    return &operation;
}

std::unique_ptr<Packet> SimProvider::packet_for(const Operation& operation,
                                                Packet::Kind kind) noexcept {
    auto packet = std::make_unique<Packet>();
    packet->kind = kind;
    packet->from = setup_.self;
    packet->life = life_;
    packet->to = operation.peer;
    packet->operation = static_cast<std::uint32_t>(&operation - operations_.data());
    packet->generation = operation.generation;
    return packet;
}

/// `from` is what a put sends; of a get, `operand` says where in it the part belongs.
void SimProvider::post_parts(Operation& operation, Packet::Kind kind, RegionId region,
                             std::uint64_t offset, const std::byte* from,
                             std::size_t bytes) noexcept {
    const std::size_t part_max = network_.options().packet_bytes;
    for (std::size_t at = 0; at < bytes; at += part_max) {
        auto packet = packet_for(operation, kind);
        packet->region = region;
        packet->offset = offset + at;
        packet->operand = at;
        packet->memory = from == nullptr ? nullptr : from + at;
        packet->bytes = std::min(part_max, bytes - at);
        network_.send(std::move(packet));
    }
}

Post SimProvider::put(OpId id, NodeId to, RegionId region, std::uint64_t offset,
                      Bytes from) noexcept {
    std::byte* const target = place(to, region, offset, from.size());
    if (from.empty()) return Post::done;
    if (network_.options().steps) {
        network_.scheduler().step();
        memcpy(place_at(to, region, offset, from.size()), from.data(), from.size());
        return Post::done;
    }
    const Entry entry{*this, queue_of(to)};
    if (to == setup_.self) {
        memcpy(target, from.data(), from.size());
        return Post::done;
    }
    Operation* const operation = new_operation(id, to, nullptr, parts_of(from.size()));
    if (operation == nullptr) return Post::again;
    if (peers_[to.value].lost) {
        finish(*operation, true);
    } else {
        post_parts(*operation, Packet::Kind::put, region, offset,
                   network_.scheduler().lasting(from.data()), from.size());
    }
    return Post::posted;
}

Post SimProvider::get(OpId id, MutableBytes to, NodeId from, RegionId region,
                      std::uint64_t offset) noexcept {
    const std::byte* const source = place(from, region, offset, to.size());
    if (to.empty()) return Post::done;
    if (network_.options().steps) {
        network_.scheduler().step();
        memcpy(to.data(), place_at(from, region, offset, to.size()), to.size());
        return Post::done;
    }
    const Entry entry{*this, queue_of(from)};
    if (from == setup_.self) {
        memcpy(to.data(), source, to.size());
        return Post::done;
    }
    Operation* const operation =
        new_operation(id, from, network_.scheduler().lasting(to.data()), parts_of(to.size()));
    if (operation == nullptr) return Post::again;
    if (peers_[from.value].lost) {
        finish(*operation, true);
    } else {
        post_parts(*operation, Packet::Kind::get, region, offset, nullptr, to.size());
    }
    return Post::posted;
}

Post SimProvider::atomic(OpId id, AtomicOp op, NodeId at, RegionId region, std::uint64_t offset,
                         std::uint64_t operand, std::uint64_t expected,
                         std::uint64_t* old) noexcept {
    HIROBA_INVARIANT((offset & 7) == 0, "atomic at offset %lu of region %u", offset, region.value);
    std::byte* const word = place(at, region, offset, 8);
    if (network_.options().steps) {
        network_.scheduler().step();
        *old = apply_atomic(
            std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place_at(at, region, offset, 8))), op,
            operand, expected);
        return Post::done;
    }
    const Entry entry{*this, queue_of(at)};
    if (at == setup_.self) {
        *old = apply_atomic(std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)), op, operand,
                            expected);
        return Post::done;
    }
    Operation* const operation =
        new_operation(id, at, network_.scheduler().lasting(reinterpret_cast<std::byte*>(old)), 1);
    if (operation == nullptr) return Post::again;
    if (peers_[at.value].lost) {
        finish(*operation, true);
        return Post::posted;
    }
    auto packet = packet_for(*operation, Packet::Kind::atomic);
    packet->atomic = op;
    packet->region = region;
    packet->offset = offset;
    packet->operand = operand;
    packet->expected = expected;
    packet->bytes = 16;
    network_.send(std::move(packet));
    return Post::posted;
}

// --- what arrives --------------------------------------------------------------------------------

void SimProvider::take(const Packet& packet) {
    switch (packet.kind) {
        case Packet::Kind::put:
            memcpy(place(setup_.self, packet.region, packet.offset, packet.bytes), packet.memory,
                   packet.bytes);
            return answer(packet, Packet::Kind::done, 0);
        case Packet::Kind::get: return answer(packet, Packet::Kind::got, 0);
        case Packet::Kind::atomic: {
            std::byte* const word = place(setup_.self, packet.region, packet.offset, 8);
            const std::uint64_t old =
                apply_atomic(std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)),
                             packet.atomic, packet.operand, packet.expected);
            return answer(packet, Packet::Kind::old, old);
        }
        case Packet::Kind::done:
        case Packet::Kind::got:
        case Packet::Kind::old: return part_done(packet);
        case Packet::Kind::wake: return ring(static_cast<Sleeper>(packet.operand));
        case Packet::Kind::message: break;
    }
    fatal("packet of kind %u", static_cast<unsigned>(packet.kind));
}

void SimProvider::answer(const Packet& packet, Packet::Kind kind, std::uint64_t old) noexcept {
    auto reply = std::make_unique<Packet>();
    reply->kind = kind;
    reply->from = setup_.self;
    reply->life = life_;
    reply->to = packet.from;
    reply->operation = packet.operation;
    reply->generation = packet.generation;
    reply->operand = kind == Packet::Kind::old ? old : packet.operand;
    if (kind == Packet::Kind::got) {
        const std::byte* const from =
            place(setup_.self, packet.region, packet.offset, packet.bytes);
        reply->body.assign(from, from + packet.bytes);
        reply->bytes = packet.bytes;
    }
    network_.send(std::move(reply));
}

void SimProvider::part_done(const Packet& packet) noexcept {
    Operation& operation = operations_[packet.operation];
    if (operation.generation != packet.generation || operation.parts == 0) return;  // failed since
    if (packet.kind == Packet::Kind::got) {
        memcpy(operation.memory + packet.operand, packet.body.data(), packet.body.size());
    } else if (packet.kind == Packet::Kind::old) {
        memcpy(operation.memory, &packet.operand, sizeof packet.operand);
    }
    if (--operation.parts == 0) finish(operation, false);
}

void SimProvider::finish(Operation& operation, bool failed) noexcept {
    operation.parts = 0;
    finished_.push_back({operation.id, operation.peer, failed});
    free_operations_.push_back(static_cast<std::uint32_t>(&operation - operations_.data()));
    ring(Sleeper::waiter);
    ring(Sleeper::service);
}

void SimProvider::take_message(std::unique_ptr<Packet> packet) {
    const bool urgent = packet->urgent;
    inbox_.push_back(std::move(packet));
    ring(Sleeper::waiter);
    if (urgent) ring(Sleeper::service);
}

// --- messages ------------------------------------------------------------------------------------

Post SimProvider::send(NodeId to, MessageKind kind, Urgency urgency,
                       std::span<const Bytes> parts) noexcept {
    const std::size_t bytes = check_message_bytes(parts, message_bytes_max);
    const Entry entry{*this, queue_of(to)};
    Peer& peer = peers_[to.value];
    if (peer.lost) return Post::done;  // its memory is gone
    auto packet = std::make_unique<Packet>();
    packet->kind = Packet::Kind::message;
    packet->from = setup_.self;
    packet->life = life_;
    packet->to = to;
    packet->message = kind;
    packet->urgent = urgency == Urgency::wake_service;
    packet->bytes = bytes;
    const std::size_t room = packet->wire_bytes();
    if (peer.bytes_under_way + room > network_.options().queue_bytes) return Post::again;
    peer.bytes_under_way += room;
    packet->body.reserve(bytes);
    for (const Bytes part : parts) {
        packet->body.insert(packet->body.end(), part.begin(), part.end());
    }
    if (to == setup_.self) {
        take_message(std::move(packet));
    } else {
        network_.send(std::move(packet));
    }
    return Post::done;
}

std::size_t SimProvider::poll(Arrivals& arrivals, std::size_t count_max) noexcept {
    const Entry entry{*this, queues_.size() - 1};  // the one for completions
    for (const Credit& credit : std::exchange(credits_, {})) {
        peers_[credit.peer.value].bytes_under_way -= credit.bytes;
    }
    std::size_t events = 0;
    for (; !finished_.empty(); ++events) {
        const Finished finished = finished_.front();
        finished_.pop_front();
        if (finished.failed) {
            arrivals.failed(finished.id, finished.peer);
        } else {
            arrivals.completed(finished.id);
        }
    }
    for (std::size_t count = 0; count < count_max && !inbox_.empty(); ++count, ++events) {
        const std::unique_ptr<Packet> packet = std::move(inbox_.front());
        inbox_.pop_front();
        network_.message_read(*packet);
        arrivals.message(packet->from, packet->message, packet->body);
    }
    for (; !silent_.empty(); ++events) {
        const NodeId peer = silent_.back();
        silent_.pop_back();
        arrivals.silent(peer);
    }
    // A thread that polls in vain lets virtual time go by, or no event would ever come.
    empty_polls_ = events == 0 ? empty_polls_ + 1 : 0;
    if (empty_polls_ > 1 && !network_.options().steps) network_.scheduler().pass();
    return events;
}

// The program learns of it by its next poll.
void SimProvider::message_was_read(NodeId to, std::size_t wire_bytes) noexcept {
    credits_.push_back({to, wire_bytes});
}

// --- loss ----------------------------------------------------------------------------------------

void SimProvider::lose(NodeId node) noexcept {
    Peer& peer = peers_[node.value];
    if (std::exchange(peer.lost, true)) return;
    network_.forget(setup_.self, node, life_);
    for (Operation& operation : operations_) {
        if (operation.parts != 0 && operation.peer == node) finish(operation, true);
    }
}

void SimProvider::peer_lost(NodeId node) noexcept {
    lose(node);
    ring(Sleeper::waiter);
    ring(Sleeper::service);
}

void SimProvider::fell_silent(NodeId node) {
    if (peers_[node.value].lost) return;
    lose(node);
    silent_.push_back(node);
    ring(Sleeper::waiter);
    ring(Sleeper::service);
}

// --- sleep ---------------------------------------------------------------------------------------

void SimProvider::ring(Sleeper role) noexcept {
    Bed& bed = beds_[static_cast<std::size_t>(role)];
    ++bed.rings;
    for (Fiber* sleeper : bed.sleepers) network_.scheduler().wake(*sleeper);
}

// `ready` may itself wait for other nodes; what rings meanwhile counts.
void SimProvider::sleep(Sleeper role, std::uint64_t timeout_ns, bool (*ready)(void*),
                        void* argument) noexcept {
    Scheduler& scheduler = network_.scheduler();
    Bed& bed = beds_[static_cast<std::size_t>(role)];
    const std::uint64_t rings = bed.rings;
    empty_polls_ = 0;
    if (ready(argument) || bed.rings != rings) return;
    if (!inbox_.empty() || !finished_.empty() || !silent_.empty()) return scheduler.pass();
    ++sleeps_;
    Fiber& self = scheduler.running();
    bed.sleepers.push_back(&self);
    scheduler.park(scheduler.time_ns() + timeout_ns);
    bed.sleepers.erase(std::find(bed.sleepers.begin(), bed.sleepers.end(), &self));
}

void SimProvider::wake(NodeId node, Sleeper role) noexcept {
    if (node == setup_.self) return ring(role);
    if (peers_.contains(node.value) && peers_[node.value].lost) return;
    auto packet = std::make_unique<Packet>();
    packet->kind = Packet::Kind::wake;
    packet->from = setup_.self;
    packet->life = life_;
    packet->to = node;
    packet->operand = static_cast<std::uint64_t>(role);
    network_.send(std::move(packet));
}

}  // namespace hiroba::net::sim
