// SPDX-License-Identifier: BSD-3-Clause
// Role: the channels of the middle layer: messages from one rank to another, in order.
// Source: the public interface of ACP 3.
//
// How: both ends of a channel tell each other their numbers; the n-th channel that two ranks create
// for one direction is the n-th on both. A message travels in pieces of at most 32 KiB; what
// has no receive yet is kept, so a sender has at most window_bytes under way that the receiver
// has not taken. Handlers carry on what queued requests wait for, so messages arrive while both
// programs compute.
//
//   sender                                     receiver
//   connect -------------------------------->  connect
//   data, data ... (window_bytes) ---------->  into the posted buffer, or kept
//   <------------------------------------ taken (bytes)
//   goodbye, behind all data --------------->  receives that still wait fail
//   <------------------------------------ goodbye, when it is freed, too
//
// Invariant: requests of one end are carried out in their order. No message is sent while the latch
// is held, and one thread at a time sends what is queued, so messages leave in the order they were
// queued in.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "base/result.hpp"
#include "net/net.hpp"

namespace hiroba::acp {

/// Any thread; not from handlers. Make it before Endpoint::connect(); it outlives the last poll.
class Channels {
public:
    using Id = std::uint64_t;  ///< of an end or a request; never 0, never given twice

    explicit Channels(net::Endpoint& endpoint);
    Channels(const Channels&) = delete;

    /// Makes this node's end of the next channel between the two, one of which it is. Waits for
    /// nobody. Nodes are those of the job.
    Result<Id> create(NodeId sender, NodeId receiver);
    /// Starts to send; `from` is borrowed until the request is complete. Refused: the end is not
    /// the sender's, or is being freed.
    Result<Id> send(Id end, const void* from, std::uint64_t bytes);
    /// Starts to receive the next message; what is beyond `bytes` of it is dropped.
    Result<Id> receive(Id end, void* to, std::uint64_t bytes);
    /// Starts to free the end: complete when all it was asked before is, and the other end is
    /// freed.
    Result<Id> free(Id end);
    /// Waits for a request, which ends it. Refused: none, or a receive whose channel the sender
    /// freed.
    /// @return bytes received; 0 of others
    Result<std::uint64_t> wait(Id request);

    static constexpr std::uint64_t window_bytes = std::uint64_t{256} << 10;

private:
    struct Message;
    struct Request {
        enum class Kind : std::uint8_t { send, receive, free };
        Kind kind = Kind::send;
        bool has_failed = false;
        std::byte* buffer = nullptr;
        std::uint64_t bytes = 0;  ///< of the message, or of the buffer
        std::uint64_t done = 0;   ///< sent; or received and in the buffer
        std::atomic<bool> is_complete{false};
    };
    /// A message that has begun to arrive.
    struct Arrival {
        std::uint64_t bytes = 0, arrived = 0, kept_pieces = 0;
        std::vector<std::byte> kept;  ///< while it has no request
        Request* into = nullptr;
    };
    struct End {
        Id id = 0;
        NodeId peer;
        bool is_sender = false;
        Id peer_end = 0;  ///< 0: not connected
        bool is_freeing = false, said_goodbye = false, heard_goodbye = false;
        std::uint64_t window = window_bytes;  ///< of a sender
        std::deque<Request*> queue;
        std::deque<Arrival> arrivals;  ///< not yet taken by a request, or not all there
        Request* freeing = nullptr;
    };
    struct Outgoing {
        NodeId to;
        std::vector<std::byte> head;
        const std::byte* data = nullptr;
        std::uint64_t bytes = 0;
        Request* completes = nullptr;  ///< when it has been sent
    };
    using Meeting = std::tuple<std::uint32_t, bool, std::uint64_t>;  ///< peer, sends, number

    static void on_message(void* self, NodeId from, Bytes body) noexcept;
    void take(NodeId from, const Message& message, Bytes data);
    void take_data(End& end, const Message& message, Bytes data);
    void put_into(Arrival& arrival, Bytes data, std::uint64_t offset);
    /// Gives arrivals to receives that wait, in order.
    void match(End& end);
    /// Queues what the end's requests may send by now.
    void pump(End& end);
    void queue(NodeId to, const Message& message, const std::byte* data = nullptr,
               std::uint64_t bytes = 0, Request* completes = nullptr);
    void tell_taken(End& end, std::uint64_t bytes, std::uint64_t pieces);
    void fail_receives(End& end);
    void complete(Request& request);
    void finish_if_over(End& end);
    /// Sends what is queued. The latch is not held.
    void flush();
    Result<Id> add_request(Id end, Request::Kind kind, std::byte* buffer, std::uint64_t bytes);

    net::Endpoint& endpoint_;
    std::uint64_t piece_bytes_max_;
    std::mutex latch_;  ///< of all below
    Id last_id_ = 0;
    std::map<Id, End> ends_;
    std::map<Id, Request> requests_;
    std::map<Meeting, std::uint64_t> created_;  ///< numbers given so far; number 0 in the key
    std::map<Meeting, Id> waiting_ends_;        ///< of this node, whose peer has not told its end
    std::map<Meeting, Id> waiting_peers_;       ///< ends of others, for which none is here yet
    std::deque<Outgoing> outgoing_;
    bool is_sending_ = false;
};

}  // namespace hiroba::acp
