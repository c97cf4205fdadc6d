// SPDX-License-Identifier: BSD-3-Clause
// Role: see datagram.hpp.
#include "net/wire/datagram.hpp"

#include <algorithm>

namespace hiroba::net::wire {
namespace {

constexpr std::size_t length_at = 6;
constexpr std::size_t authenticator_at = 32;
constexpr unsigned acknowledged_bits = 48;

template <class Number>
Number read(const std::byte* at) noexcept {
    Number number;
    std::memcpy(&number, at, sizeof number);
    return number;
}

template <class Number>
void write(std::byte* at, Number number) noexcept {
    std::memcpy(at, &number, sizeof number);
}

/// @param word  where the authenticator lies
void write_header(std::byte* start, const DatagramHeader& header, std::size_t bytes,
                  std::uint64_t word) noexcept {
    write(start, datagram_magic);
    write(start + 4, header.flags);
    write(start + 5, header.selective_words);
    write(start + length_at, static_cast<std::uint16_t>(bytes));
    write(start + 8, header.from);
    write(start + 12, header.to);
    write(start + 16, header.sequence);
    write(start + 24, header.acknowledged | std::uint64_t{header.arrived} << acknowledged_bits);
    write(start + authenticator_at, word);
    for (std::size_t i = 0; i < header.selective_words; ++i) {
        write(start + fixed_header_bytes + 8 * i, header.selective[i]);
    }
}

/// Whether the payload is as the record's kind demands.
bool is_well_formed(const WireRecord& record) noexcept {
    switch (record.kind) {
        case RecordKind::message:
        case RecordKind::got:
            return record.offset <= record.total_bytes &&
                   record.payload_bytes <= record.total_bytes - record.offset;
        case RecordKind::put: return record.payload_bytes != 0;
        case RecordKind::get: return record.payload_bytes == 0 && record.total_bytes != 0;
        case RecordKind::atomic: return record.payload_bytes == 16 && record.offset % 8 == 0;
        case RecordKind::atomic_done: return record.payload_bytes == 8;
        case RecordKind::wake: return record.payload_bytes == 0 && record.sub <= 1;
        case RecordKind::kick:
            return (record.payload_bytes == 1 || record.payload_bytes == 2 ||
                    record.payload_bytes == 4 || record.payload_bytes == 8) &&
                   record.offset % record.payload_bytes == 0;
        case RecordKind::count: break;
    }
    return false;
}

}  // namespace

std::byte* seal_datagram(const DatagramHeader& header, const DirectionKey& key, std::byte* body,
                         std::size_t body_bytes) noexcept {
    std::byte* const start = body - header.bytes();
    write_header(start, header, header.bytes() + body_bytes, 0);
    write(start + authenticator_at, authenticator(key, {start, header.bytes() + body_bytes}));
    return start;
}

std::size_t encrypt_datagram(const DatagramHeader& header, DirectionCipher& cipher, Bytes body,
                             std::byte* to) noexcept {
    const std::size_t bytes = header.bytes() + body.size() + tag_bytes;
    write_header(to, header, bytes, cipher.next_number());
    cipher.seal({to, header.bytes()}, body, to + header.bytes());
    return bytes;
}

// Nothing is authenticated yet. Where the kernel joins a foreign datagram with ours, ours is
// refused with it, as if it had been lost.
std::size_t joined_bytes(Bytes bytes) noexcept {
    const std::size_t all = std::max<std::size_t>(bytes.size(), 1);
    if (bytes.size() < fixed_header_bytes) return all;
    const std::size_t each = read<std::uint16_t>(bytes.data() + length_at);
    if (each < fixed_header_bytes) return all;
    for (Bytes rest = bytes; !rest.empty(); rest = rest.subspan(std::min(each, rest.size()))) {
        if (rest.size() < fixed_header_bytes ||
            read<std::uint32_t>(rest.data()) != datagram_magic ||
            read<std::uint16_t>(rest.data() + length_at) != std::min(each, rest.size())) {
            return all;
        }
    }
    return each;
}

Refusal sender_of(Bytes datagram, std::uint32_t self, std::uint32_t nodes,
                  std::uint32_t& from) noexcept {
    if (datagram.size() < fixed_header_bytes) return Refusal::truncated;
    if (read<std::uint32_t>(datagram.data()) != datagram_magic) return Refusal::foreign;
    from = read<std::uint32_t>(datagram.data() + 8);
    const bool ours = from < nodes && read<std::uint32_t>(datagram.data() + 12) == self;
    return ours ? Refusal::none : Refusal::misdirected;
}

namespace {

/// What says how long the header is.
Refusal read_length(Bytes datagram, std::size_t behind, DatagramHeader& header) noexcept {
    if (datagram.size() < fixed_header_bytes) return Refusal::truncated;
    header.flags = read<std::uint8_t>(datagram.data() + 4);
    header.selective_words = read<std::uint8_t>(datagram.data() + 5);
    const bool whole =
        header.selective_words <= selective_words_max && datagram.size() >= header.bytes() + behind;
    return whole ? Refusal::none : Refusal::truncated;
}

/// The rest of the header, and whether the records are well formed. The datagram is ours.
Refusal read_authentic(Bytes datagram, DatagramHeader& header) noexcept {
    const std::byte* const start = datagram.data();
    header.from = read<std::uint32_t>(start + 8);
    header.to = read<std::uint32_t>(start + 12);
    header.sequence = read<std::uint64_t>(start + 16);
    const auto acknowledged = read<std::uint64_t>(start + 24);
    header.acknowledged = acknowledged & ((std::uint64_t{1} << acknowledged_bits) - 1);
    header.arrived = static_cast<std::uint16_t>(acknowledged >> acknowledged_bits);
    for (std::size_t i = 0; i < header.selective_words; ++i) {
        header.selective[i] = read<std::uint64_t>(start + fixed_header_bytes + 8 * i);
    }
    WireRecord record;
    Bytes payload;
    Bytes rest = records_of(datagram, header);
    if (rest.empty() != (header.sequence == 0)) return Refusal::malformed;
    while (!rest.empty()) {
        if (!decode_wire_record(rest, record, payload)) return Refusal::malformed;
        rest = rest.subspan(padded_record_bytes(record.payload_bytes));
    }
    return Refusal::none;
}

}  // namespace

Refusal open_datagram(Bytes datagram, const DirectionKey& key, DatagramHeader& header) noexcept {
    const std::byte* const start = datagram.data();
    const Refusal refusal = read_length(datagram, 0, header);
    if (refusal != Refusal::none) return refusal;
    // Hashed with zeros where the authenticator lies; the bytes are the receiver's own buffer.
    const auto claimed = read<std::uint64_t>(start + authenticator_at);
    auto* const place = const_cast<std::byte*>(start) + authenticator_at;
    write(place, std::uint64_t{0});
    const std::uint64_t found = authenticator(key, datagram);
    write(place, claimed);
    return found == claimed ? read_authentic(datagram, header) : Refusal::forged;
}

Refusal decrypt_datagram(MutableBytes& datagram, DirectionCipher& cipher,
                         DatagramHeader& header) noexcept {
    const Refusal refusal = read_length(datagram, tag_bytes, header);
    if (refusal != Refusal::none) return refusal;
    const auto number = read<std::uint64_t>(datagram.data() + authenticator_at);
    const MutableBytes whole = datagram.first(datagram.size() - tag_bytes);
    const std::byte* const tag = datagram.data() + whole.size();
    if (!cipher.open(number, whole.first(header.bytes()), whole.subspan(header.bytes()), tag))
        return Refusal::forged;
    datagram = whole;
    return read_authentic(datagram, header);
}

bool decode_wire_record(Bytes records, WireRecord& record, Bytes& payload) noexcept {
    if (records.size() < wire_record_bytes) return false;
    const std::byte* const at = records.data();
    record.kind = static_cast<RecordKind>(read<std::uint8_t>(at));
    record.sub = read<std::uint8_t>(at + 1);
    record.payload_bytes = read<std::uint16_t>(at + 2);
    record.tag = read<std::uint32_t>(at + 4);
    record.offset = read<std::uint64_t>(at + 8);
    record.region = read<std::uint32_t>(at + 16);
    record.total_bytes = read<std::uint32_t>(at + 20);
    if (records.size() < padded_record_bytes(record.payload_bytes)) return false;
    payload = records.subspan(wire_record_bytes, record.payload_bytes);
    return is_well_formed(record);
}

}  // namespace hiroba::net::wire
