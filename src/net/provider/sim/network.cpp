// SPDX-License-Identifier: BSD-3-Clause
// Role: see network.hpp.
#include "net/provider/sim/network.hpp"

#include <algorithm>
#include <utility>

#include "net/provider/sim/sim_provider.hpp"

namespace hiroba::net::sim {

Network::Network(Scheduler& scheduler, std::uint32_t nodes, const NetworkOptions& options)
    : scheduler_(scheduler),
      options_(options),
      providers_(nodes, nullptr),
      lives_(nodes, 0),
      busy_until_ns_(nodes, 0),
      crashed_(nodes, false),
      cards_(nodes) {}

Network::~Network() = default;

void Network::cut(NodeId a, NodeId b, bool is_cut) {
    link(a, b).cut = is_cut;
    link(b, a).cut = is_cut;
}

void Network::crash(NodeId node) {
    crashed_[node.value] = true;
    scheduler_.crash(node);
}

void Network::message_read(const Packet& packet) {
    SimProvider* const sender = providers_[packet.from.value];
    if (sender == nullptr || lives_[packet.from.value] != packet.life) return;
    sender->message_was_read(packet.to, packet.wire_bytes());
}

void Network::forget(NodeId from, NodeId to, std::uint32_t life) {
    link_of_life(from, to, life).dead = true;
}

std::uint32_t Network::attach(NodeId node, SimProvider& provider) {
    providers_[node.value] = &provider;
    return ++lives_[node.value];
}

void Network::detach(NodeId node, const SimProvider& provider) {
    if (providers_[node.value] == &provider) providers_[node.value] = nullptr;
}

Network::Link& Network::link_of_life(NodeId from, NodeId to, std::uint32_t life) {
    Link& way = link(from, to);
    if (way.life < life) {
        const bool cut = way.cut;
        way = Link{};
        way.life = life;
        way.cut = cut;
    }
    return way;
}

// --- the sending card ----------------------------------------------------------------------------

void Network::send(std::unique_ptr<Packet> packet) {
    Link& way = link_of_life(packet->from, packet->to, packet->life);
    if (way.life != packet->life) return;  // of a provider that has had its successor
    packet->sequence = way.next_sequence++;
    if (packet->kind == Packet::Kind::message) packet->order = way.next_order++;
    packet->first_sent_ns = scheduler_.time_ns();
    ++counts_.packets;
    CardCounts& card = cards_[packet->from.value];
    ++card.sent;
    card.bytes_sent += packet->wire_bytes();
    if (free_slots_.empty()) {
        free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
        slots_.emplace_back();
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot].packet = std::move(packet);
    transmit(slot);
}

/// Sends the packet once more: now it arrives, twice perhaps, or not; if no acknowledgement comes
/// back it is sent again.
void Network::transmit(std::uint32_t slot) {
    Packet& packet = *slots_[slot].packet;
    const Link& way = link(packet.from, packet.to);
    if (way.life != packet.life || way.dead || crashed_[packet.from.value]) return give_back(slot);
    const std::uint64_t now = scheduler_.time_ns();
    if (now - packet.first_sent_ns > options_.silence_max_ns) {
        const bool has_successor = lives_[packet.from.value] != packet.life;
        SimProvider* const sender = has_successor ? nullptr : providers_[packet.from.value];
        const NodeId to = packet.to;
        give_back(slot);
        if (sender != nullptr) sender->fell_silent(to);
        return;
    }
    Random& random = scheduler_.random();
    ++counts_.sent;
    counts_.resent += packet.attempts != 0;
    const bool cut = way.cut || crashed_[packet.to.value];
    const bool lost = cut || random.happens(options_.loss);
    counts_.lost += lost;
    if (!lost) {
        event_at(now + way_ns(packet), slot, [](void* self, std::uint64_t argument) {
            auto& network = *static_cast<Network*>(self);
            if (network.packet_of(argument) != nullptr) {
                network.arrive(static_cast<std::uint32_t>(argument));
            }
        });
        if (random.happens(options_.duplicate)) {
            ++counts_.doubled;
            event_at(now + way_ns(packet), slot, [](void* self, std::uint64_t argument) {
                auto& network = *static_cast<Network*>(self);
                if (network.packet_of(argument) != nullptr) {
                    network.arrive(static_cast<std::uint32_t>(argument));
                }
            });
        }
    }
    const std::uint64_t silence_ns =
        std::min(options_.resend_max_ns, options_.resend_min_ns << std::min(packet.attempts, 20u));
    ++packet.attempts;
    event_at(now + silence_ns, slot, [](void* self, std::uint64_t argument) {
        auto& network = *static_cast<Network*>(self);
        Packet* const packet = network.packet_of(argument);
        if (packet != nullptr && !packet->acknowledged) {
            network.transmit(static_cast<std::uint32_t>(argument));
        } else if (packet != nullptr) {
            network.give_back(static_cast<std::uint32_t>(argument));
        }
    });
}

std::uint64_t Network::way_ns(const Packet& packet) {
    Random& random = scheduler_.random();
    std::uint64_t& busy_until = busy_until_ns_[packet.from.value];
    const std::uint64_t now = scheduler_.time_ns();
    busy_until = std::max(busy_until, now) +
                 packet.wire_bytes() * 1000 / std::max<std::uint64_t>(1, options_.bytes_per_us);
    std::uint64_t ns = busy_until - now + options_.latency_ns;
    if (options_.jitter_ns != 0) ns += random.below(options_.jitter_ns + 1);
    if (random.happens(options_.reorder)) {
        ++counts_.held_back;
        ns += random.below(options_.reorder_ns + 1);
    }
    return ns;
}

void Network::event_at(std::uint64_t time_ns, std::uint32_t slot, Scheduler::Fire fire) {
    const Packet& packet = *slots_[slot].packet;
    const std::uint64_t what = pair(packet.from, packet.to) << 24 ^ packet.sequence << 4 ^
                               static_cast<std::uint64_t>(packet.kind);
    scheduler_.at(time_ns, what & ~(std::uint64_t{1} << 63), fire, this,
                  std::uint64_t{slots_[slot].uses} << 32 | slot);
}

/// nullptr when the slot has gone to another packet since.
Packet* Network::packet_of(std::uint64_t argument) noexcept {
    Slot& slot = slots_[static_cast<std::uint32_t>(argument)];
    return slot.uses == argument >> 32 ? slot.packet.get() : nullptr;
}

void Network::give_back(std::uint32_t slot) {
    slots_[slot].packet.reset();
    ++slots_[slot].uses;
    free_slots_.push_back(slot);
}

// --- the receiving card --------------------------------------------------------------------------

bool Network::first_time(Link& link, std::uint64_t sequence) {
    if (sequence < link.executed_below || link.executed.contains(sequence)) return false;
    link.executed.insert(sequence);
    while (!link.executed.empty() && *link.executed.begin() == link.executed_below) {
        link.executed.erase(link.executed.begin());
        ++link.executed_below;
    }
    return true;
}

void Network::arrive(std::uint32_t slot) {
    Packet& packet = *slots_[slot].packet;
    Link& way = link(packet.from, packet.to);
    if (way.dead || crashed_[packet.to.value] || providers_[packet.to.value] == nullptr) return;
    // One side may have closed an endpoint and opened another while the other side has not.
    if (way.life != packet.life || lives_[packet.to.value] != packet.life) return;
    // The acknowledgement takes the wire back; when it is lost, the packet comes again.
    if (!link(packet.to, packet.from).cut && !scheduler_.random().happens(options_.loss)) {
        packet.acknowledged = true;
    }
    if (!first_time(way, packet.sequence)) {
        ++counts_.dropped;
        return;
    }
    ++cards_[packet.to.value].received;
    execute(way, slot);
}

void Network::execute(Link& way, std::uint32_t slot) {
    Packet& packet = *slots_[slot].packet;
    SimProvider& target = *providers_[packet.to.value];
    if (packet.kind != Packet::Kind::message) return target.take(packet);
    auto copy = std::make_unique<Packet>(packet);
    way.early.emplace(packet.order, std::move(copy));
    for (auto next = way.early.find(way.deliver_order); next != way.early.end();
         next = way.early.find(++way.deliver_order)) {
        target.take_message(std::move(next->second));
        way.early.erase(next);
    }
}

}  // namespace hiroba::net::sim
