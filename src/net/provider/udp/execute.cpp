// SPDX-License-Identifier: BSD-3-Clause
// Role: see udp_provider.hpp; what the packets of peers say, carried out once and in order.
// Invariant: datagrams that come here were made by a node of the job; what makes no sense in them
// is a bug there, and stops this node with the numbers.
#include <algorithm>
#include <cstring>

#include "base/fatal.hpp"
#include "net/provider/apply_atomic.hpp"
#include "net/provider/store_whole.hpp"
#include "net/provider/udp/udp_provider.hpp"

namespace hiroba::net::udp {
namespace {

constexpr std::uint32_t unanswered_max = 16;  // packets executed

}  // namespace

/// Carries out the kept packets whose turn it is.
void UdpProvider::execute_front(Peer& peer, Delivery& delivery) noexcept {
    for (Bytes records = peer.receive.front(); !records.empty() && !peer.lost;
         records = peer.receive.front()) {
        if (!execute(peer, records, delivery)) return;
    }
}

/// Carries out the packet whose turn it is, from where the last call stopped. False when no more
/// messages may be delivered: then it is to be kept for the next poll.
bool UdpProvider::execute(Peer& peer, Bytes records, Delivery& delivery) noexcept {
    wire::WireRecord record;
    Bytes payload;
    while (peer.front_done < records.size()) {
        const bool whole =
            wire::decode_wire_record(records.subspan(peer.front_done), record, payload);
        HIROBA_INVARIANT(whole, "record at %lu of %lu bytes from node %u", peer.front_done,
                         records.size(), peer.node.value);
        if (record.kind == wire::RecordKind::message) {
            if (!take_message(peer, record, payload, delivery)) return false;
        } else {
            carry_out(peer, record, payload);
            ++delivery.events;
        }
        peer.front_done += wire::padded_record_bytes(record.payload_bytes);
    }
    peer.front_done = 0;
    peer.receive.executed();
    if (++peer.not_acknowledged >= unanswered_max) peer.acknowledge = Acknowledge::now;
    if (peer.acknowledge == Acknowledge::nothing) {
        peer.acknowledge = Acknowledge::later;
        peer.owes_since_ns = now_ns_;
    }
    return true;
}

bool UdpProvider::take_message(Peer& peer, const wire::WireRecord& record, Bytes payload,
                               Delivery& delivery) noexcept {
    HIROBA_INVARIANT(record.total_bytes <= message_bytes_max &&
                         record.offset == peer.message_bytes && record.sub < message_kinds_max,
                     "part at %lu of a message of %u bytes, kind %u, from node %u, of which %lu "
                     "are there",
                     record.offset, record.total_bytes, record.sub, peer.node.value,
                     peer.message_bytes);
    const bool ends = record.offset + payload.size() == record.total_bytes;
    if (ends && delivery.messages == delivery.count_max) return false;
    Bytes body = payload;
    if (payload.size() != record.total_bytes) {
        std::memcpy(peer.message + peer.message_bytes, payload.data(), payload.size());
        peer.message_bytes += payload.size();
        body = {peer.message, peer.message_bytes};
    }
    if (!ends) return true;
    peer.message_bytes = 0;
    ++delivery.messages;
    ++delivery.events;
    ++delivering_;
    latch_.unlock();
    delivery.arrivals.message(peer.node, static_cast<MessageKind>(record.sub), body);
    latch_.lock();
    --delivering_;
    return true;
}

void UdpProvider::carry_out(Peer& peer, const wire::WireRecord& record, Bytes payload) noexcept {
    const std::uint32_t self = setup_.self.value;
    switch (record.kind) {
        case wire::RecordKind::put: {
            std::byte* const target =
                mapped_address(self, record.region, record.offset, payload.size());
            std::memcpy(target, payload.data(), payload.size());
            peer.acknowledge = std::max(peer.acknowledge, Acknowledge::soon);
            return;
        }
        case wire::RecordKind::get: {
            mapped_address(self, record.region, record.offset, record.total_bytes);
            HIROBA_INVARIANT(!peer.answers.full(), "node %u asked for more than %u answers",
                             peer.node.value, ops_max);
            peer.answers.append({.kind = wire::RecordKind::got,
                                 .tag = record.tag,
                                 .region = record.region,
                                 .bytes = record.total_bytes,
                                 .offset_or_old = record.offset});
            return;
        }
        case wire::RecordKind::atomic: {
            auto* const word = reinterpret_cast<std::uint64_t*>(
                mapped_address(self, record.region, record.offset, 8));
            HIROBA_INVARIANT(
                record.sub <= static_cast<unsigned>(AtomicOp::compare_swap) && !peer.answers.full(),
                "atomic operation %u of node %u", record.sub, peer.node.value);
            std::uint64_t operands[2];
            std::memcpy(operands, payload.data(), sizeof operands);
            const std::uint64_t old =
                apply_atomic(std::atomic_ref(*word), static_cast<AtomicOp>(record.sub), operands[0],
                             operands[1]);
            peer.answers.append(
                {.kind = wire::RecordKind::atomic_done, .tag = record.tag, .offset_or_old = old});
            return;
        }
        case wire::RecordKind::got:
        case wire::RecordKind::atomic_done: return take_answer(peer, record, payload);
        case wire::RecordKind::kick:
            // On the fly: from the header straight to memory.
            store_whole(mapped_address(self, record.region, record.offset, payload.size()),
                        payload);
            return;
        case wire::RecordKind::wake:
            return sleep_.ring(record.sub == 1 ? Sleeper::service : Sleeper::waiter);
        case wire::RecordKind::message:
        case wire::RecordKind::count: break;
    }
    fatal("record of kind %u from node %u", static_cast<unsigned>(record.kind), peer.node.value);
}

void UdpProvider::take_answer(Peer& peer, const wire::WireRecord& record, Bytes payload) noexcept {
    const bool known = record.tag < ops_max && ops_[record.tag].pending &&
                       ops_[record.tag].peer == peer.node.value;
    HIROBA_INVARIANT(known, "node %u answers %u, which was not asked", peer.node.value, record.tag);
    Op& op = ops_[record.tag];
    const bool got = record.kind == wire::RecordKind::got;
    HIROBA_INVARIANT(op.kind == (got ? Op::Kind::get : Op::Kind::atomic) &&
                         (!got || (record.offset == op.position && record.total_bytes == op.bytes)),
                     "answer at %lu of %u bytes from node %u, asked were %lu and %lu had come",
                     record.offset, record.total_bytes, peer.node.value, op.bytes, op.position);
    std::memcpy(op.memory + op.position, payload.data(), payload.size());
    op.position += payload.size();
    if (op.position == op.bytes) finish(record.tag);
}

}  // namespace hiroba::net::udp
