// SPDX-License-Identifier: BSD-3-Clause
// Role: see udp_provider.hpp; what leaves, what arrives, what time brings. All under the latch.
//
// The transport makes one promise, from which the others follow: every packet is executed once, in
// the order in which its sender composed it. So an atomic happens once though its request was sent
// three times, a message's parts need no numbers of their own, and a list of reads is done in its
// order.
//
// A packet is a datagram with a sequence number and up to 16 KiB of records: parts of messages,
// puts, questions (gets, atomics), answers, wakes. Packets of one direction are kept in the send
// window until the peer has *executed* them; acknowledgements say that, not that they arrived.
// Therefore a put is complete when its last packet is acknowledged, without an answer of its own.
//
// Out: compose() fills the window in the order wakes, answers, own work, so that a peer never waits
// for an answer behind this node's own flood; transmit() sends what the congestion window allows.
// In: take() authenticates, then sorts by sequence: seen (counted, and acknowledged again, since
// the acknowledgement was lost), early (kept), next (executed, and after it what was kept).
// execute() stops at a message that its reader has no room for; the packet stays in front and goes
// on with the next poll (`front_done` says from which record).
//
// Acknowledgements wait for something to ride on. They leave alone with the first poll that finds
// nothing where a put waits, else after 10 us, and at once after a loss, after 16 packets, or when
// the peer asks (its window is half full). That a node owes one is `dirty_`; end_poll() tells
// those that go to sleep so.
//
// Loss has two signs. Something sent later was acknowledged: send_window.cpp finds that. Or nothing
// was: keep_time() finds that, and probes with one packet, twice, before it believes in a loss,
// because a peer that computes is silent, too; the first time it also rings the peer's bell.
// Answers alone have more time: who waits for one sends its question again, and that says so; who
// has got it computes most often, and acknowledges it with what it sends next. Of the last packets
// of a flight nothing later can tell, so where the path loses much they are sent twice (repeat()).
//
// Handlers. take_message() opens the latch while a message is delivered: handlers send. So anything
// may have changed when it returns, but for the front packet of that peer, which only the poller
// (one thread at a time) takes off.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "net/provider/udp/udp_provider.hpp"

namespace hiroba::net::udp {
namespace {

constexpr std::size_t receive_rounds_max = 8;
constexpr std::size_t tail_packets_max = 4;        // more than may overtake a lost one
constexpr std::size_t finished_together_max = 64;  // completions told with the latch open once

}  // namespace

// --- composing -----------------------------------------------------------------------------------

/// Puts into the window what waits for it: wakes, answers, then this node's own work.
void UdpProvider::compose(Peer& peer) noexcept {
    for (unsigned role = 0; peer.wakes != 0 && role < 2; ++role) {
        if ((peer.wakes >> role & 1) == 0) continue;
        std::byte* const at = peer.send.take(wire::wire_record_bytes);
        if (at == nullptr) return;
        wire::encode_wire_record(
            {.kind = wire::RecordKind::wake, .sub = static_cast<std::uint8_t>(role)}, nullptr, at);
        peer.wakes = static_cast<std::uint8_t>(peer.wakes & ~(1u << role));
    }
    if (!compose_answers(peer)) return;
    while (!peer.to_compose.empty()) {
        const std::uint32_t index = peer.to_compose.first;
        if (!compose_op(peer, index)) return;
        peer.to_compose.take(ops_.get());
        if (ops_[index].kind == Op::Kind::put) peer.to_arrive.append(ops_.get(), index);
    }
}

/// False when the window is full.
bool UdpProvider::compose_answers(Peer& peer) noexcept {
    for (; !peer.answers.empty(); peer.answers.pop()) {
        Answer& answer = peer.answers.front();
        wire::WireRecord record{.kind = answer.kind, .tag = answer.tag};
        if (answer.kind == wire::RecordKind::atomic_done) {
            record.payload_bytes = 8;
            std::byte* const at =
                peer.send.take(wire::padded_record_bytes(8), SendWindow::Content::answer);
            if (at == nullptr) return false;
            const auto* old = reinterpret_cast<const std::byte*>(&answer.offset_or_old);
            wire::encode_wire_record(record, old, at);
            continue;
        }
        while (answer.position < answer.bytes) {
            if (!peer.send.wants_more()) return false;
            const std::size_t rest = answer.bytes - answer.position;
            const std::size_t least = std::min(rest, smallest_piece_bytes);
            const std::size_t room = peer.send.room(wire::padded_record_bytes(least));
            if (room == 0) return false;
            const std::size_t some = std::min(rest, room - wire::wire_record_bytes);
            record.payload_bytes = static_cast<std::uint16_t>(some);
            record.offset = answer.position;
            record.total_bytes = answer.bytes;
            wire::encode_wire_record(
                record, regions_[answer.region].start + answer.offset_or_old + answer.position,
                peer.send.take(wire::padded_record_bytes(some), SendWindow::Content::answer));
            answer.position += static_cast<std::uint32_t>(some);
        }
        // The fence keeps reads for the next request behind these (Limits::lists_in_order).
        std::atomic_thread_fence(std::memory_order_acquire);
    }
    return true;
}

/// False when the op is not wholly in the window.
bool UdpProvider::compose_op(Peer& peer, std::uint32_t index) noexcept {
    Op& op = ops_[index];
    wire::WireRecord record{.sub = static_cast<std::uint8_t>(op.atomic),
                            .tag = index,
                            .offset = op.offset,
                            .region = op.region};
    if (peer.send.free_packets() <= packets_for_messages) return false;
    if (op.kind == Op::Kind::get) {
        record.kind = wire::RecordKind::get;
        record.total_bytes = static_cast<std::uint32_t>(op.bytes);
        wire::encode_wire_record(record, nullptr, peer.send.take(wire::wire_record_bytes));
        return true;
    }
    if (op.kind == Op::Kind::atomic) {
        record.kind = wire::RecordKind::atomic;
        record.payload_bytes = 16;
        const std::uint64_t words[2] = {op.rest.words.operand, op.rest.words.expected};
        wire::encode_wire_record(record, reinterpret_cast<const std::byte*>(words),
                                 peer.send.take(wire::padded_record_bytes(16)));
        return true;
    }
    record.kind = wire::RecordKind::put;
    while (op.position < op.bytes) {
        if (peer.send.free_packets() <= packets_for_messages || !peer.send.wants_more())
            return false;
        const std::size_t rest = op.bytes - op.position;
        const std::size_t least = std::min(rest, smallest_piece_bytes);
        const std::size_t room = peer.send.room(wire::padded_record_bytes(least));
        const std::size_t some = std::min(rest, room - wire::wire_record_bytes);
        record.payload_bytes = static_cast<std::uint16_t>(some);
        record.offset = op.offset + op.position;
        wire::encode_wire_record(record, op.memory + op.position,
                                 peer.send.take(wire::padded_record_bytes(some)));
        op.position += some;
    }
    op.last_sequence = peer.send.last_composed();
    return true;
}

// --- sending -------------------------------------------------------------------------------------

wire::DatagramHeader UdpProvider::header_to(Peer& peer) noexcept {
    wire::DatagramHeader header;
    header.from = setup_.self.value;
    header.to = peer.node.value;
    peer.receive.describe(header);
    peer.acknowledge = Acknowledge::nothing;
    peer.not_acknowledged = 0;
    return header;
}

void UdpProvider::transmit(Peer& peer) noexcept {
    std::uint64_t sequence = peer.send.next_to_send();
    if (sequence == 0) return;
    now_ns_ = now_ns();
    if (!peer.send.outstanding()) peer.silent_since_ns = now_ns_;
    const bool computes = peer.send.answers_are_late(now_ns_);
    wire::DatagramHeader header = header_to(peer);
    Bytes tail[tail_packets_max];
    std::size_t count = 0;
    for (; sequence != 0; sequence = peer.send.next_to_send()) {
        header.sequence = sequence;
        header.flags = peer.send.wants_answer(sequence) ? wire::flag_answer_now : 0;
        const Bytes datagram =
            seals_.seal(peer, header, peer.send.body(sequence), peer.send.body_bytes(sequence));
        peer.send.sent(sequence, now_ns_);
        tail[count++ % tail_packets_max] = datagram;
        emit(peer, datagram, now_ns_);
    }
    for (unsigned copy = 1; copy < peer.send.copies(); ++copy)
        repeat(peer, {tail, std::min(count, tail_packets_max)});
    socket_.flush();
    if (computes && peer.send.has_work_under_way()) ring_bell(peer);
    if (peer.way.shrunk) [[unlikely]]
        follow_path(peer);
    sleep_.note_deadline(peer.send.deadline_ns());
}

/// Sends packets that were kept for more to come.
void UdpProvider::transmit_kept() noexcept {
    for (Peer* peer : kept_) {
        peer->kept = 0;
        if (!peer->lost) transmit(*peer);
    }
    kept_.clear();
}

/// On a path that loses: what left last, once more. That it is lost nothing that overtakes it
/// shows.
void UdpProvider::repeat(Peer& peer, std::span<const Bytes> tail) noexcept {
    for (const Bytes datagram : tail) {
        peer.send.repeated();
        emit(peer, datagram, now_ns_);
    }
}

/// The path takes smaller datagrams than it did (a tunnel, another route). Those composed already
/// leave one by one, and the system takes them to pieces.
void UdpProvider::follow_path(Peer& peer) noexcept {
    peer.way.shrunk = false;
    peer.send.limit(path_bytes(peer.way));
    if (std::exchange(told_shrunk_, true)) return;
    say("the path to node %u takes datagrams of %lu bytes only, from now on: a tunnel or another "
        "route with a smaller MTU; look at the devices between the hosts if it should not",
        peer.node.value, peer.way.datagram_bytes);
}

void UdpProvider::acknowledge(Peer& peer) noexcept {
    HeaderSpace space;
    const wire::DatagramHeader said = header_to(peer);
    const Bytes header = seals_.seal(peer, said, space.bytes + said.bytes(), 0);
    // Mostly the way back loses as much.
    for (unsigned copy = 0; copy < std::min(peer.send.copies(), 2u); ++copy)
        emit(peer, header, now_ns_);
    socket_.flush();
}

/// Wakes a peer whose threads may all be computing. Bypasses the bad weather of tests: it carries
/// no data.
void UdpProvider::ring_bell(Peer& peer) noexcept {
    HeaderSpace space;
    ++counts_.sent;
    const wire::DatagramHeader said = header_to(peer);
    socket_.ring(peer.way, seals_.seal(peer, said, space.bytes + said.bytes(), 0));
}

/// Hands a datagram to the socket, or to the bad weather before it; flush() is the caller's.
void UdpProvider::emit(Peer& peer, Bytes datagram, std::uint64_t now_ns) noexcept {
    ++counts_.sent;
    int times = 1;
    if (out_.on()) [[unlikely]] {
        times = out_.treat(datagram, peer.node.value, now_ns);
        sleep_.note_deadline(out_.due_ns());
    }
    for (; times > 0; --times) socket_.add(peer.way, datagram);
}

// --- receiving -----------------------------------------------------------------------------------

std::size_t UdpProvider::poll(Arrivals& arrivals, std::size_t count_max) noexcept {
    Delivery delivery{arrivals, count_max};
    const std::scoped_lock lock{latch_};
    sleep_.count_poll();
    transmit_kept();
    // Records that no poll has taken yet go first.
    for (std::size_t i = 0; i < dirty_.size(); ++i) execute_front(*dirty_[i], delivery);
    const std::uint64_t received = counts_.received;
    if (sleep_.bell_rang()) [[unlikely]]
        receive_bell(delivery);
    receive(delivery);
    const bool idle = counts_.received == received && delivery.messages < count_max;
    const std::uint64_t next = sleep_.deadline_ns();
    // receive() has looked at the clock if anything came; without anything due nobody asks.
    if (idle && (next != ~std::uint64_t{0} || !dirty_.empty())) now_ns_ = now_ns();
    if (now_ns_ >= next) {
        release_held(delivery);
        keep_time();
    }
    const bool pressing = look_after(idle);
    tell_finished(delivery);
    sleep_.end_poll(pressing || !finished_.empty(), !dirty_.empty());
    return delivery.events;
}

/// Treats datagrams that came to the bell as if they had come to the socket.
void UdpProvider::receive_bell(Delivery& delivery) noexcept {
    sleep_.silence_bell();
    for (std::size_t i = 0; i < Socket::receive_max && socket_.receive_bell(); ++i) {
        now_ns_ = now_ns();
        arrive(socket_.received(0), delivery);
    }
}

void UdpProvider::receive(Delivery& delivery) noexcept {
    for (std::size_t round = 0; round < receive_rounds_max; ++round) {
        const std::size_t buffers = socket_.receive();
        if (buffers == 0) return;
        now_ns_ = now_ns();
        for (std::size_t i = 0; i < buffers; ++i) {
            MutableBytes rest = socket_.received(i);
            const std::size_t each = wire::joined_bytes(rest);
            do {  // an empty datagram is refused like any other
                const std::size_t bytes = std::min(each, rest.size());
                arrive(rest.first(bytes), delivery);
                rest = rest.subspan(bytes);
            } while (!rest.empty());
        }
        if (buffers < Socket::receive_max) return;
    }
}

void UdpProvider::arrive(MutableBytes datagram, Delivery& delivery) noexcept {
    ++counts_.received;
    if (!in_.on()) [[likely]]
        return take(datagram, delivery);
    int times = in_.treat(datagram, 0, now_ns_);
    sleep_.note_deadline(in_.due_ns());
    // As any buffer it may be changed in place.
    for (; times > 1; --times) take(seals_.copy(datagram), delivery);
    if (times > 0) take(datagram, delivery);
}

void UdpProvider::release_held(Delivery& delivery) noexcept {
    if (!in_.on()) return;
    std::uint64_t tag = 0;
    for (MutableBytes held = out_.release(now_ns_, tag); !held.empty();
         held = out_.release(now_ns_, tag)) {
        socket_.add(talk_to(static_cast<std::uint32_t>(tag))->way, held);
        socket_.flush();
    }
    for (MutableBytes held = in_.release(now_ns_, tag); !held.empty();
         held = in_.release(now_ns_, tag)) {
        take(held, delivery);
    }
}

void UdpProvider::take(MutableBytes datagram, Delivery& delivery) noexcept {
    const auto refuse = [&](wire::Refusal refusal) {
        ++counts_.refused[static_cast<std::size_t>(refusal)];
    };
    std::uint32_t from = 0;
    wire::Refusal refusal = wire::sender_of(datagram, setup_.self.value, setup_.nodes, from);
    if (refusal != wire::Refusal::none) return refuse(refusal);
    wire::DatagramHeader header;
    refusal = seals_.open(peers_[from], drawn_, peers_.drawn(from), datagram, header);
    if (refusal != wire::Refusal::none) return refuse(refusal);

    Peer& peer = *talk_to(from);
    if (peer.lost) return;
    if (!peer.send.acknowledge(header, now_ns_)) return refuse(wire::Refusal::malformed);
    peer.silent_since_ns = now_ns_;
    finish_arrived(peer);
    mark_dirty(peer);
    if (header.sequence == 0) return;

    peer.receive.arrived();
    if ((header.flags & wire::flag_answer_now) != 0) peer.acknowledge = Acknowledge::now;
    const Bytes records = wire::records_of(datagram, header);
    switch (peer.receive.fate_of(header.sequence)) {
        case ReceiveWindow::PacketFate::seen:
            // A packet that was sent again asks for an answer at once; a mere copy does not.
            ++counts_.seen_before;
            peer.acknowledge = std::max(peer.acknowledge, Acknowledge::soon);
            if ((header.flags & wire::flag_answer_now) != 0) ask_again(peer);
            return;
        case ReceiveWindow::PacketFate::beyond:
            ++counts_.seen_before;
            peer.acknowledge = Acknowledge::now;
            return;
        case ReceiveWindow::PacketFate::early:
            peer.receive.keep(header.sequence, records);
            peer.acknowledge = Acknowledge::now;
            return;
        case ReceiveWindow::PacketFate::next: break;
    }
    if (execute(peer, records, delivery)) {
        execute_front(peer, delivery);
    } else {
        peer.receive.keep(header.sequence, records);
    }
}

/// Its request came before, and so may the answer have gone, and got lost.
void UdpProvider::ask_again(Peer& peer) noexcept {
    if (!peer.send.outstanding()) return;
    peer.send.peer_asks_again();
    sleep_.note_deadline(peer.send.deadline_ns());
}

void UdpProvider::mark_dirty(Peer& peer) noexcept {
    if (!std::exchange(peer.dirty, true)) dirty_.push_back(&peer);
}

// --- the end of a poll ---------------------------------------------------------------------------

/// Sends what has room by now, and the acknowledgements that nothing else carries. One that is not
/// urgent waits until a poll finds nothing, and one that nobody waits for some time more: whoever
/// got a message often answers it, and a datagram of its own costs both sides as much as an answer.
/// True when the next poll must not be waited for.
bool UdpProvider::look_after(bool idle) noexcept {
    std::size_t kept = 0;
    bool pressing = false;
    for (std::size_t i = 0; i < dirty_.size(); ++i) {
        Peer& peer = *dirty_[i];
        compose(peer);
        transmit(peer);
        const bool late = peer.acknowledge == Acknowledge::soon ||
                          (peer.acknowledge == Acknowledge::later &&
                           now_ns_ - peer.owes_since_ns >= acknowledge_late_ns);
        if (peer.acknowledge == Acknowledge::now || (late && idle)) acknowledge(peer);
        const bool waits = !peer.receive.front().empty();
        if ((waits || peer.acknowledge != Acknowledge::nothing) && !peer.lost) {
            pressing = pressing || waits || peer.acknowledge != Acknowledge::later;
            dirty_[kept++] = &peer;
        } else {
            peer.dirty = false;
        }
    }
    dirty_.resize(kept);
    return pressing;
}

/// Does what is due by now, and notes when the next is.
void UdpProvider::keep_time() noexcept {
    std::uint64_t next = std::min(out_.due_ns(), in_.due_ns());
    sleep_.reset_deadline();
    for (Peer* peer : talked_) {
        if (peer->lost || !peer->send.outstanding()) continue;
        if (now_ns_ >= peer->send.deadline_ns()) {
            if (silence_max_ns_ != 0 && now_ns_ - peer->silent_since_ns > silence_max_ns_) {
                peer->silent = any_silent_ = true;
                lose(*peer);
                continue;
            }
            const bool first = peer->send.timed_out(now_ns_);
            compose(*peer);
            transmit(*peer);
            if (first) ring_bell(*peer);
        }
        next = std::min(next, peer->send.deadline_ns());
    }
    sleep_.note_deadline(next);
}

void UdpProvider::finish(std::uint32_t index) noexcept {
    ops_[index].pending = false;
    finished_.append(ops_.get(), index);
    sleep_.note_unfinished();
}

/// The puts that the peer has executed, which are the first of its list.
void UdpProvider::finish_arrived(Peer& peer) noexcept {
    const std::uint64_t acknowledged = peer.send.acknowledged();
    const std::uint32_t begin = peer.to_arrive.first;
    std::uint32_t end = no_op, index = begin;
    for (; index != no_op && ops_[index].last_sequence <= acknowledged; index = ops_[index].next) {
        ops_[index].pending = false;
        end = index;
    }
    if (end == no_op) return;
    peer.to_arrive.first = index;
    finished_.append_chain(ops_.get(), begin, end);
    sleep_.note_unfinished();
}

/// Fails all that is pending to `peer`; nothing is sent to it or taken from it any more.
void UdpProvider::lose(Peer& peer) noexcept {
    if (std::exchange(peer.lost, true)) return;
    peer.to_compose = peer.to_arrive = {};
    for (std::uint32_t index = 0; index < ops_max; ++index) {
        Op& op = ops_[index];
        if (!op.pending || op.peer != peer.node.value) continue;
        op.failed = true;
        finish(index);
    }
}

void UdpProvider::tell_finished(Delivery& delivery) noexcept {
    struct Finished {  // initializes nothing: there are mostly none
        std::uint64_t id;
        std::uint32_t peer;
        bool failed;
        void (*function)(void* data, Outcome outcome) noexcept;
        void* data;
    } some[finished_together_max];
    while (!finished_.empty()) {
        std::size_t count = 0;
        std::uint32_t requests = 0, end = no_op, index = finished_.first;
        const std::uint32_t begin = index;
        for (; index != no_op && count < finished_together_max; index = ops_[index].next) {
            const Op& op = ops_[index];
            end = index;
            requests += op.id.is_request();
            Finished& told = some[count++];
            told.id = op.id.value;
            told.peer = op.peer;
            told.failed = op.failed;
            if (told.id == OpId::bare) {
                told.function = op.rest.then.function;
                told.data = op.rest.then.data;
            }
        }
        finished_.first = index;
        free_ops_.append_chain(ops_.get(), begin, end);
        delivery.events += count;
        // Sequentially consistent: offload::Engine::join().
        if (requests != 0) requests_.store(requests_.load(std::memory_order_relaxed) - requests);
        latch_.unlock();
        for (std::size_t i = 0; i < count; ++i) {
            const Outcome outcome = some[i].failed ? Outcome::peer_lost : Outcome::done;
            if (some[i].id == OpId::bare) {
                delivery.arrivals.ended({some[i].function, some[i].data}, outcome);
            } else if (some[i].failed) {
                delivery.arrivals.failed(OpId{some[i].id}, NodeId{some[i].peer});
            } else {
                delivery.arrivals.completed(OpId{some[i].id});
            }
        }
        latch_.lock();
    }
    if (!std::exchange(any_silent_, false)) [[likely]]
        return;
    for (Peer* peer : talked_) {
        if (!peer->silent) continue;
        peer->silent = false;
        ++delivery.events;
        latch_.unlock();
        delivery.arrivals.silent(peer->node);
        latch_.lock();
    }
}

}  // namespace hiroba::net::udp
