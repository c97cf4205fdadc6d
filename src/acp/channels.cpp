// SPDX-License-Identifier: BSD-3-Clause
#include "acp/channels.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "acp/messages.hpp"
#include "acp/refusal.hpp"
#include "base/fatal.hpp"

namespace hiroba::acp {
namespace {

/// What a piece takes of the window beside its bytes, so that small ones are bounded, too.
constexpr std::uint64_t piece_overhead = 64;

}  // namespace

struct Channels::Message {
    enum class Kind : std::uint32_t { connect, data, taken, goodbye };
    Kind kind = Kind::connect;
    std::uint32_t origin_sends = 0;  ///< of connect: the origin is the sender
    Id to = 0;                       ///< the end it is for; of connect: the origin's
    std::uint64_t value = 0;         ///< connect: number; data: bytes of all; taken: bytes
    std::uint64_t offset = 0;        ///< of data
};

Channels::Channels(net::Endpoint& endpoint)
    : endpoint_(endpoint),
      piece_bytes_max_(std::min<std::uint64_t>(
          32 << 10, endpoint.provider().limits().message_bytes_max - sizeof(Message))) {
    endpoint.on(message::channel, &Channels::on_message, this);
}

// --- what a program asks -------------------------------------------------------------------------

Result<Channels::Id> Channels::create(NodeId sender, NodeId receiver) {
    const NodeId self = endpoint_.self();
    Id id = 0;
    {
        const std::scoped_lock guard{latch_};
        const bool is_sender = sender == self;
        const NodeId peer = is_sender ? receiver : sender;
        id = ++last_id_;
        End& end = ends_[id];
        end.id = id;
        end.peer = peer;
        end.is_sender = is_sender;
        const std::uint64_t number = ++created_[{peer.value, is_sender, 0}];
        const Meeting meeting{peer.value, is_sender, number};
        queue(peer, {Message::Kind::connect, is_sender ? 1u : 0u, id, number, 0});
        if (const auto known = waiting_peers_.extract(meeting)) {
            end.peer_end = known.mapped();
        } else {
            waiting_ends_[meeting] = id;
        }
    }
    flush();
    return id;
}

Result<Channels::Id> Channels::send(Id end, const void* from, std::uint64_t bytes) {
    // The buffer is read alone.
    auto* const buffer = static_cast<std::byte*>(const_cast<void*>(from));
    return add_request(end, Request::Kind::send, buffer, bytes);
}

Result<Channels::Id> Channels::receive(Id end, void* to, std::uint64_t bytes) {
    return add_request(end, Request::Kind::receive, static_cast<std::byte*>(to), bytes);
}

Result<Channels::Id> Channels::free(Id end) {
    return add_request(end, Request::Kind::free, nullptr, 0);
}

Result<Channels::Id> Channels::add_request(Id id, Request::Kind kind, std::byte* buffer,
                                           std::uint64_t bytes) {
    Id made = 0;
    {
        const std::scoped_lock guard{latch_};
        const auto found = ends_.find(id);
        if (found == ends_.end()) return refused("no channel, or one that was freed");
        End& end = found->second;
        if (end.is_freeing) return refused("the channel is being freed");
        const bool is_right =
            kind == Request::Kind::free || end.is_sender == (kind == Request::Kind::send);
        if (!is_right) {
            return refused(end.is_sender ? "this rank is the channel's sender"
                                         : "this rank is the channel's receiver");
        }
        made = ++last_id_;
        Request& request = requests_[made];
        request.kind = kind;
        request.buffer = buffer;
        request.bytes = bytes;
        if (kind == Request::Kind::free) {
            end.is_freeing = true;
            end.freeing = &request;
        } else {
            end.queue.push_back(&request);
        }
        match(end);
        pump(end);
    }
    flush();
    return made;
}

Result<std::uint64_t> Channels::wait(Id id) {
    Request* request = nullptr;
    {
        const std::scoped_lock guard{latch_};
        const auto found = requests_.find(id);
        if (found != requests_.end()) request = &found->second;
    }
    if (request == nullptr) return refused("no request, or one that was waited for");
    // Acquire, pairs with complete(). A node that is lost ends the job.
    endpoint_.wait_until(
        [request] { return request->is_complete.load(std::memory_order_acquire); });
    const std::scoped_lock guard{latch_};
    const bool has_failed = request->has_failed;
    const std::uint64_t bytes = request->kind == Request::Kind::receive ? request->done : 0;
    requests_.erase(id);
    if (has_failed) return refused("the sender freed the channel and sent nothing more");
    return bytes;
}

// --- what is carried on, with the latch held -----------------------------------------------------

void Channels::queue(NodeId to, const Message& message, const std::byte* data, std::uint64_t bytes,
                     Request* completes) {
    const Bytes head = std::as_bytes(std::span(&message, 1));
    outgoing_.push_back({to, {head.begin(), head.end()}, data, bytes, completes});
}

void Channels::complete(Request& request) {
    request.is_complete.store(true, std::memory_order_release);  // pairs with wait()
    endpoint_.wake_local();
}

void Channels::pump(End& end) {
    if (end.peer_end == 0) return;
    while (end.is_sender && !end.queue.empty()) {
        Request& request = *end.queue.front();
        const std::uint64_t left = request.bytes - request.done;
        const std::uint64_t piece = std::min(left, piece_bytes_max_);
        if (end.window < piece + piece_overhead) return;
        end.window -= piece + piece_overhead;
        const bool is_last = piece == left;
        queue(end.peer, {Message::Kind::data, 0, end.peer_end, request.bytes, request.done},
              request.buffer + request.done, piece, is_last ? &request : nullptr);
        request.done += piece;
        if (is_last) end.queue.pop_front();
    }
    // A receiver speaks last, so that nothing it tells comes to an end that is gone.
    const bool may_go = end.is_freeing && end.queue.empty() && (end.is_sender || end.heard_goodbye);
    if (may_go && !end.said_goodbye) {
        end.said_goodbye = true;
        queue(end.peer, {Message::Kind::goodbye, 0, end.peer_end, 0, 0});
    }
    finish_if_over(end);
}

/// Ends the end when both have said that nothing follows. Its number names nothing from then on.
void Channels::finish_if_over(End& end) {
    if (!end.said_goodbye || !end.heard_goodbye) return;
    if (end.freeing != nullptr) complete(*end.freeing);
    ends_.erase(end.id);
}

void Channels::tell_taken(End& end, std::uint64_t bytes, std::uint64_t pieces) {
    const std::uint64_t room = bytes + pieces * piece_overhead;
    if (room != 0) queue(end.peer, {Message::Kind::taken, 0, end.peer_end, room, 0});
}

void Channels::fail_receives(End& end) {
    for (Request* const request : std::exchange(end.queue, {})) {
        request->has_failed = true;
        complete(*request);
    }
}

void Channels::put_into(Arrival& arrival, Bytes data, std::uint64_t offset) {
    Request& request = *arrival.into;
    const std::uint64_t room = request.bytes > offset ? request.bytes - offset : 0;
    const std::uint64_t some = std::min<std::uint64_t>(room, data.size());
    if (some != 0) std::memcpy(request.buffer + offset, data.data(), some);
    request.done += some;
    if (arrival.arrived == arrival.bytes) complete(request);
}

void Channels::match(End& end) {
    for (Arrival& arrival : end.arrivals) {
        if (arrival.into != nullptr) continue;
        if (end.queue.empty()) break;
        arrival.into = end.queue.front();
        end.queue.pop_front();
        put_into(arrival, arrival.kept, 0);
        tell_taken(end, arrival.kept.size(), arrival.kept_pieces);
        arrival.kept = {};
    }
    while (!end.arrivals.empty() && end.arrivals.front().into != nullptr &&
           end.arrivals.front().arrived == end.arrivals.front().bytes) {
        end.arrivals.pop_front();
    }
}

// --- what comes ----------------------------------------------------------------------------------

void Channels::on_message(void* self, NodeId from, Bytes body) noexcept {
    auto& channels = *static_cast<Channels*>(self);
    Message message;
    HIROBA_INVARIANT(body.size() >= sizeof message,
                     "node %u sends %lu bytes by a channel, below %lu", from.value, body.size(),
                     sizeof message);
    std::memcpy(&message, body.data(), sizeof message);
    {
        const std::scoped_lock guard{channels.latch_};
        channels.take(from, message, body.subspan(sizeof message));
    }
    channels.flush();
}

void Channels::take(NodeId from, const Message& message, Bytes data) {
    if (message.kind == Message::Kind::connect) {
        // What the origin is, this node is not.
        const Meeting meeting{from.value, message.origin_sends == 0, message.value};
        const auto mine = waiting_ends_.extract(meeting);
        if (!mine) {
            waiting_peers_[meeting] = message.to;
            return;
        }
        End& end = ends_.at(mine.mapped());
        end.peer_end = message.to;
        pump(end);
        return;
    }
    const auto found = ends_.find(message.to);
    HIROBA_INVARIANT(found != ends_.end() && found->second.peer == from,
                     "node %u sends to end %lu of a channel, which is none of its", from.value,
                     message.to);
    End& end = found->second;
    switch (message.kind) {
        case Message::Kind::connect: break;
        case Message::Kind::data: take_data(end, message, data); break;
        case Message::Kind::taken: end.window += message.value; break;
        case Message::Kind::goodbye:
            end.heard_goodbye = true;
            if (!end.is_sender) fail_receives(end);
            break;
    }
    pump(end);
}

void Channels::take_data(End& end, const Message& message, Bytes data) {
    if (message.offset == 0) {
        end.arrivals.push_back({});
        end.arrivals.back().bytes = message.value;
        if (!end.queue.empty()) {
            end.arrivals.back().into = end.queue.front();
            end.queue.pop_front();
        }
    }
    HIROBA_INVARIANT(!end.arrivals.empty() && end.arrivals.back().arrived == message.offset &&
                         data.size() <= end.arrivals.back().bytes - message.offset,
                     "node %u sends %lu bytes at %lu of a message of %lu", end.peer.value,
                     data.size(), message.offset, message.value);
    Arrival& arrival = end.arrivals.back();
    arrival.arrived += data.size();
    if (arrival.into == nullptr && !end.is_freeing) {
        arrival.kept.insert(arrival.kept.end(), data.begin(), data.end());
        ++arrival.kept_pieces;
        return;
    }
    if (arrival.into != nullptr) put_into(arrival, data, message.offset);
    tell_taken(end, data.size(), 1);
    match(end);
}

void Channels::flush() {
    std::unique_lock guard{latch_};
    if (is_sending_) return;  // That thread sends these, too.
    is_sending_ = true;
    while (!outgoing_.empty()) {
        const Outgoing next = std::move(outgoing_.front());
        outgoing_.pop_front();
        guard.unlock();
        const Bytes parts[] = {next.head, Bytes{next.data, next.bytes}};
        endpoint_.send(next.to, message::channel, net::Urgency::wake_service, parts);
        guard.lock();
        if (next.completes != nullptr) complete(*next.completes);
    }
    is_sending_ = false;
}

}  // namespace hiroba::acp
