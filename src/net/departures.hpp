// SPDX-License-Identifier: BSD-3-Clause
// Role: tells nodes that wait for another one's doing that it leaves, so that a wait for what it
// will not do any more ends.
//
// A node that has waited long asks those it waits for. A node that leaves tells all that have
// asked, then and later. Invariant: what a node sent before it left arrives before that it left:
// both take the one order of a pair's messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/net.hpp"

namespace hiroba::net {

/// Thread: any. Made before connect(), on every node; asked after it.
class Departures {
public:
    explicit Departures(Endpoint& endpoint);

    /// Has `node` tell this node when it leaves. One message, whatever the number of calls. Not
    /// from a handler.
    void ask(NodeId node) noexcept;
    /// Whether `node`, which was asked, has left.
    bool has_left(NodeId node) const noexcept {
        return peers_[node.value].has_left.load(std::memory_order_acquire);  // pairs with arrived()
    }
    /// This node leaves. Not from a handler.
    void leave() noexcept;

private:
    enum class Word : std::uint32_t { ask, left };
    struct Peer {
        std::atomic<bool> has_left{false};
        std::atomic<bool> was_asked{false};
        bool has_asked = false;  ///< under latch_
    };
    void tell(NodeId node, Word word) noexcept;
    static void arrived(void* context, NodeId from, Bytes body) noexcept;

    Endpoint& endpoint_;
    std::vector<Peer> peers_;
    Latch latch_;
    bool is_leaving_ = false;  ///< under latch_
};

}  // namespace hiroba::net
