// SPDX-License-Identifier: BSD-3-Clause
// Role: see departures.hpp.
#include "net/departures.hpp"

#include <cstring>
#include <mutex>

#include "base/fatal.hpp"

namespace hiroba::net {

Departures::Departures(Endpoint& endpoint) : endpoint_(endpoint), peers_(endpoint.nodes()) {
    endpoint.on(MessageKind::departure, &Departures::arrived, this);
}

void Departures::ask(NodeId node) noexcept {
    // Relaxed: only whether the message has been sent.
    if (peers_[node.value].was_asked.exchange(true, std::memory_order_relaxed)) return;
    tell(node, Word::ask);
}

void Departures::leave() noexcept {
    {
        const std::scoped_lock guard{latch_};
        is_leaving_ = true;
    }
    // No thread changes `has_asked` from now on.
    for (std::uint32_t rank = 0; rank < peers_.size(); ++rank)
        if (peers_[rank].has_asked) tell(NodeId{rank}, Word::left);
}

void Departures::tell(NodeId node, Word word) noexcept {
    const Bytes body = std::as_bytes(std::span(&word, 1));
    endpoint_.send(node, MessageKind::departure, Urgency::when_polled, std::span(&body, 1));
}

void Departures::arrived(void* context, NodeId from, Bytes body) noexcept {
    auto& self = *static_cast<Departures*>(context);
    auto word = Word::ask;
    HIROBA_INVARIANT(body.size() == sizeof word, "node %u speaks of leaving in %lu bytes",
                     from.value, body.size());
    std::memcpy(&word, body.data(), sizeof word);
    Peer& peer = self.peers_[from.value];
    if (word == Word::left) {
        peer.has_left.store(true, std::memory_order_release);  // pairs with has_left()
        return;
    }
    bool leaving;
    {
        const std::scoped_lock guard{self.latch_};
        leaving = self.is_leaving_;
        if (!leaving) peer.has_asked = true;
    }
    if (leaving) self.tell(from, Word::left);
}

}  // namespace hiroba::net
