// SPDX-License-Identifier: BSD-3-Clause
// Role: messages: sends in order to each peer, received into buffers that all peers share.
// Invariant: what a message is travels as immediate data, so that a wake-up is a packet without a
// body and a short message one without a header. Messages larger than a buffer are several sends.
// A peer without a free buffer has the device try again: nothing is lost, nothing is reordered.
// What finds no room, or no connection yet, waits here: so many messages, and as many words among
// the providers themselves (keys, atomics by the target's processor) as there are.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "net/provider/provider.hpp"
#include "net/provider/verbs/send_queue.hpp"

namespace hiroba::net::verbs {

/// What providers say to each other.
struct Word {
    enum class What : std::uint32_t { key_wanted, key, no_key, atomic_wanted, atomic_done, bell };
    What what{};
    std::uint32_t region = 0;
    std::uint32_t chunk = 0;   ///< or the lane of the operation
    std::uint32_t number = 0;  ///< the key; or the operation's place, or an errno
    std::uint32_t generation = 0;
    std::uint32_t op = 0;  ///< AtomicOp; of bell: 1 wakes the service thread
    std::uint64_t offset = 0, operand = 0, expected = 0;
};

/// The immediate data of a send.
struct Tag {
    std::uint8_t kind = 0;  ///< MessageKind, or word_kind
    bool more = false;      ///< another part of the same message follows
    bool wakes_service = false;

    std::uint32_t encode() const noexcept {
        return std::uint32_t{kind} | (more ? 1u << 8 : 0) | (wakes_service ? 1u << 9 : 0);
    }
    static Tag decode(std::uint32_t bits) noexcept {
        return {static_cast<std::uint8_t>(bits), (bits >> 8 & 1) != 0, (bits >> 9 & 1) != 0};
    }
};

class MessageQueue {
public:
    static constexpr std::uint8_t word_kind = 0xfe;
    static constexpr std::size_t buffer_bytes = SendQueue::big_piece_bytes;

    MessageQueue(Device& device, Introducer& introducer, std::uint32_t nodes);
    ~MessageQueue();
    Result<void> open();
    ibv_srq* srq() const noexcept { return srq_; }
    ibv_cq* receives() const noexcept { return receives_; }
    SendQueue& queue() noexcept { return queue_; }

    /// `again` where too many wait already.
    Post send(NodeId to, MessageKind kind, Urgency urgency, std::span<const Bytes> parts) noexcept;
    /// Leaves as soon as there is room; asks for a connection where there is none.
    void say(NodeId to, const Word& word) noexcept;
    /// Has what does not report by itself report.
    void flush(NodeId to) noexcept;
    /// Takes completions of sends; what waits leaves. broke(peer): its connection did.
    template <class Broke>
    std::size_t poll(std::size_t count_max, Broke&& broke) noexcept;
    /// Whether messages wait for room. Without the latch.
    bool any_waits() const noexcept { return waiting_count_.load(std::memory_order_relaxed) != 0; }
    bool has_waiting(NodeId to) const noexcept { return !waiting_[to.value].empty(); }
    void lose(NodeId peer) noexcept;

    /// Takes up to `into.size()` arrivals; give back each buffer.
    std::size_t receive(std::span<ibv_wc> into) noexcept;
    const std::byte* buffer(const ibv_wc& arrival) const noexcept {
        return buffers_ + arrival.wr_id * buffer_bytes;
    }
    void give_back(std::span<const ibv_wc> arrivals) noexcept;
    /// As SendQueue::arm(), of sends: of all where something waits for room, else of errors.
    bool arm_sends() noexcept;
    /// As SendQueue::arm(), of arrivals. @param solicited_only  those that ask for the service
    /// thread
    bool arm(bool solicited_only) noexcept;

private:
    static constexpr std::uint32_t buffers = 256;
    static constexpr std::size_t waiting_max = 1024;  ///< messages to one peer
    static constexpr std::size_t waiting_bytes_max = std::size_t{4} << 20;
    struct Waiting {
        Tag tag;
        std::vector<std::byte> body;
    };
    /// In order.
    struct WaitingRoom {
        std::deque<Waiting> messages;
        std::size_t bytes = 0;
        bool empty() const noexcept { return messages.empty(); }
    };

    void expect(std::span<const std::uint64_t> places) noexcept;
    bool room_for(NodeId to, std::size_t bytes) noexcept;
    bool send_now(NodeId to, Tag tag, std::span<const Bytes> parts) noexcept;
    void wait(NodeId to, Tag tag, std::span<const Bytes> parts) noexcept;
    void post(NodeId to, const Tag& tag, const std::byte* bytes, std::size_t count, Piece piece,
              bool solicited) noexcept;
    void let_go(NodeId to) noexcept;

    Device& device_;
    SendQueue queue_;                            ///< its latch guards all but what arrives
    std::vector<WaitingRoom> waiting_;           ///< by peer
    std::atomic<std::size_t> waiting_count_{0};  ///< in all; written with the latch held

    Latch arrivals_latch_;
    ibv_srq* srq_ = nullptr;
    ibv_cq* receives_ = nullptr;
    std::byte* buffers_ = nullptr;
    ibv_mr* buffers_mr_ = nullptr;
    std::array<ibv_wc, 16> kept_;
    std::size_t kept_count_ = 0;
};

template <class Broke>
std::size_t MessageQueue::poll(std::size_t count_max, Broke&& broke) noexcept {
    const std::scoped_lock guard{queue_.latch()};
    const std::size_t seen =
        queue_.reap(count_max, [&](NodeId peer, const Request&, bool carried_out) {
            if (!carried_out) broke(peer);
        });
    if (any_waits()) {
        for (std::uint32_t rank = 0; rank < waiting_.size(); ++rank) let_go(NodeId{rank});
    }
    return seen;
}

}  // namespace hiroba::net::verbs
