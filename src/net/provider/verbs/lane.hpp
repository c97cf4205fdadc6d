// SPDX-License-Identifier: BSD-3-Clause
// Role: one of the ways by which threads put, get and do atomics at once: a send queue and the
// operations on it. Invariant: everything is called with queue().latch() held. The operations of
// one list start in its order, each once the one before it has been handed to the device whole
// (atomics that take several steps: is done), so that the device carries them out in order.
//
// Memory that is not registered travels through pinned pieces. Operations larger than a piece or a
// chunk are several requests. The device knows fetch-add and compare-swap; the other atomics are
// made of compare-swaps, repeated until the word was what the last one found.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/provider/provider.hpp"
#include "net/provider/verbs/pinned_regions.hpp"
#include "net/provider/verbs/send_queue.hpp"

namespace hiroba::net::verbs {

/// A put, get or atomic on its way.
struct Op {
    OpId id{};
    NodeId peer{};
    Work::Kind kind{};
    AtomicOp op{};
    bool in_use = false;
    bool by_processor = false;  ///< an atomic that the target's processor does
    bool asked = false;         ///< it was asked to
    bool waiting = false;       ///< for a connection, a key or room: in Lane's list
    bool failed = false;
    bool parked = false;  ///< failed, and nobody has said that its peer is lost
    bool told = false;    ///< as failed; what is under way is still to come back
    std::uint32_t region = 0;
    std::uint32_t generation = 0;  ///< of this place
    std::uint32_t under_way = 0;   ///< requests
    std::uint64_t offset = 0;
    std::byte* memory = nullptr;
    std::size_t bytes = 0, posted = 0;
    std::uint64_t operand = 0, expected = 0;
    std::uint64_t guess = 0;  ///< what the word is believed to be
    std::uint64_t found = 0;
    std::uint64_t* old = nullptr;
    Op* after = nullptr;  ///< the next of its list, not started
};

/// What a lane knows of the other parts.
class LaneHost {
public:
    virtual ~LaneHost() = default;
    /// Its connection broke, or somebody said so: nothing goes there any more.
    virtual bool is_gone(NodeId peer) const noexcept = 0;
    virtual bool is_lost(NodeId peer) const noexcept = 0;
    virtual void broke(NodeId peer) noexcept = 0;
    /// Where the region starts at the peer.
    virtual std::uint64_t start_of(NodeId peer, std::uint32_t region) const noexcept = 0;
    virtual void ask_for_key(NodeId peer, std::uint32_t region, std::uint32_t chunk) noexcept = 0;
    virtual void ask_for_atomic(const Op& op, std::uint32_t lane, std::uint32_t place) noexcept = 0;
};

class Lane {
public:
    Lane(Device& device, Introducer& introducer, LaneHost& host, PinnedRegions& regions,
         PeerKeys& keys, std::uint32_t index, std::uint32_t nodes);

    SendQueue& queue() noexcept { return queue_; }
    /// Whether there are places for a list of so many operations; all of them, where it is longer.
    bool has_room(std::size_t operations) const noexcept {
        return free_.size() >= std::min<std::size_t>(operations, ops_max);
    }
    /// A place for an operation, or nullptr. The caller fills it in.
    Op* take() noexcept;
    /// Starts it. True once those after it may start; else they go behind it (Op::after).
    /// queue().ring() is the caller's.
    bool start(Op& op) noexcept { return advance(op); }
    /// Whether `next` has to wait for the end of `op`, before it in its list: a message to the
    /// target's processor would overtake what the device still carries out.
    static bool would_overtake(const Op& next, const Op& op) noexcept {
        return next.by_processor && op.under_way != 0;
    }

    /// Takes completions and goes on with what waited; tells up to `count_max` operations by
    /// told(id, peer, failed), with the latch open.
    template <class Told>
    std::size_t poll(std::size_t count_max, Told&& told) noexcept;
    /// Takes the value that the target's processor found.
    void answered(std::uint32_t place, std::uint32_t generation, std::uint64_t found) noexcept;
    /// All that is under way or parked fails.
    void lose(NodeId peer) noexcept;
    /// Whether nothing is under way but to peers that are gone.
    bool is_drained() const noexcept;
    /// Whether there is something to tell. Any waiter looks before it sleeps.
    bool has_finished() const noexcept { return !finished_.empty(); }
    /// Without the latch: whoever posts from now on has it known.
    bool is_idle() const noexcept { return used_.load(std::memory_order_relaxed) == 0; }

private:
    static constexpr std::uint32_t ops_max = 512;

    void run(Op* first) noexcept;
    bool advance(Op& op) noexcept;
    bool transfer(Op& op) noexcept;
    bool post_atomic(Op& op) noexcept;
    bool find_key(const Op& op, std::uint64_t offset, std::uint32_t& key) noexcept;
    void wait(Op& op) noexcept;
    void requested(const Request& request, bool carried_out) noexcept;
    void step(Op& op) noexcept;
    void conclude(Op& op) noexcept;
    void give(Op& op) noexcept;
    void go_on() noexcept;

    LaneHost& host_;
    PinnedRegions& regions_;
    PeerKeys& keys_;
    SendQueue queue_;
    std::unique_ptr<Op[]> ops_;
    std::atomic<std::uint32_t> used_{0};  ///< written with the latch held
    std::vector<Op*> free_, waiting_, finished_, going_on_;
};

template <class Told>
std::size_t Lane::poll(std::size_t count_max, Told&& told) noexcept {
    queue_.latch().lock();
    const std::size_t seen =
        queue_.reap(count_max, [&](NodeId peer, const Request& request, bool carried_out) {
            if (!carried_out) host_.broke(peer);
            requested(request, carried_out);
        });
    go_on();
    queue_.ring();
    std::size_t count = 0;
    for (; count < count_max && !finished_.empty(); ++count) {
        Op& op = *finished_.front();
        finished_.erase(finished_.begin());
        const OpId id = op.id;
        const NodeId peer = op.peer;
        const bool failed = op.failed;
        if (!failed && op.kind == Work::Kind::atomic) *op.old = op.found;
        op.told = true;
        if (op.under_way == 0) give(op);
        queue_.latch().unlock();
        told(id, peer, failed);
        queue_.latch().lock();
    }
    queue_.latch().unlock();
    return seen + count;
}

}  // namespace hiroba::net::verbs
