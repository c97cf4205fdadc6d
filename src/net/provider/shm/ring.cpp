// SPDX-License-Identifier: BSD-3-Clause
// Role: see ring.hpp. Whatever is read from the ring was written by another process, so it is
// checked before it is believed.
#include "net/provider/shm/ring.hpp"

#include <cstring>

#include "base/fatal.hpp"
#include "net/wire/record.hpp"

namespace hiroba::net::shm {
namespace {

constexpr std::size_t record_bytes(std::size_t body_bytes) {
    return round_up(wire::record_header_bytes + body_bytes, record_unit_bytes);
}

// A skip record and the largest record together must fit, or a message could never be sent.
static_assert(2 * record_bytes(message_bytes_max) <= ring_bytes);
static_assert((ring_bytes & (ring_bytes - 1)) == 0);

}  // namespace

bool RingWriter::has_room(std::size_t bytes) noexcept {
    if (tail_ + bytes - head_seen_ <= ring_bytes) return true;
    head_seen_ = control_->head.load(std::memory_order_acquire);  // pairs with RingReader::read()
    return tail_ + bytes - head_seen_ <= ring_bytes;
}

bool RingWriter::write(MessageKind kind, std::span<const Bytes> parts,
                       std::size_t body_bytes) noexcept {
    const std::size_t record = record_bytes(body_bytes);
    const std::size_t left = ring_bytes - tail_ % ring_bytes;
    const std::size_t skipped = record <= left ? 0 : left;
    if (!has_room(skipped + record)) return false;

    if (skipped != 0) {
        const auto skip_bytes = static_cast<std::uint32_t>(skipped - wire::record_header_bytes);
        wire::encode_record({skip_bytes, wire::skip_kind}, at(tail_));
        tail_ += skipped;
    }
    std::byte* to = at(tail_) + wire::record_header_bytes;
    for (const Bytes part : parts) {
        if (!part.empty()) std::memcpy(to, part.data(), part.size());
        to += part.size();
    }
    wire::encode_record({static_cast<std::uint32_t>(body_bytes), static_cast<std::uint8_t>(kind)},
                        at(tail_));
    tail_ += record;
    control_->tail.store(tail_, std::memory_order_release);  // pairs with RingReader::empty()
    return true;
}

void RingReader::give_back() noexcept {
    if (given_back_ == delivered_) return;
    for (; given_back_ != delivered_; given_back_ += record_unit_bytes) {
        wire::clear_record(at(given_back_));
    }
    control_->head.store(given_back_, std::memory_order_release);  // pairs with has_room()
}

std::size_t RingReader::read(Arrivals& arrivals, std::size_t count_max) noexcept {
    give_back();
    // About one queueful at most, so that one busy sender cannot keep the caller from the others.
    const std::uint64_t end = delivered_ + ring_bytes;
    std::size_t count = 0;
    wire::Record record;
    while (delivered_ < end && count < count_max) {
        const std::byte* const place = at(delivered_);
        if (!wire::decode_record(place, record)) break;
        const std::size_t bytes = record_bytes(record.body_bytes);
        const std::size_t left = ring_bytes - delivered_ % ring_bytes;
        HIROBA_INVARIANT(bytes <= left,
                         "node %u sent a record of %lu bytes where %lu lie before the ring's end",
                         from_.value, bytes, left);
        if (record.kind != wire::skip_kind) {
            HIROBA_INVARIANT(
                record.kind < message_kinds_max && record.body_bytes <= message_bytes_max,
                "node %u sent a message of kind %u and %u bytes", from_.value, record.kind,
                record.body_bytes);
            arrivals.message(from_, static_cast<MessageKind>(record.kind),
                             Bytes{place + wire::record_header_bytes, record.body_bytes});
            ++count;
        }
        delivered_ += bytes;
        control_->delivered.store(delivered_, std::memory_order_release);  // pairs with empty()
    }
    return count;
}

}  // namespace hiroba::net::shm
