// SPDX-License-Identifier: BSD-3-Clause
// Role: the layout of a datagram: a header with an authenticator, then records.
//
//   0 magic  4 flags  5 selective words  6 length  8 from  12 to  16 sequence
//   24 acknowledged (6 bytes)  30 arrived  32 authenticator  40 selective acknowledgements (0 to 4
//   words)  then records, 8-byte aligned
//
// Encrypted ones have the number of their cipher at 32, the records are encrypted, and 16 bytes
// follow that authenticate all.
//
// Invariant: little-endian; nothing in a datagram is looked at before its authenticator was found
// right, save what is needed to find the key. A datagram that opens is whole and well formed, down
// to the last record; whether a record's numbers make sense is for who executes it to check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"
#include "net/wire/authenticator.hpp"
#include "net/wire/cipher.hpp"

namespace hiroba::net::wire {

inline constexpr std::uint32_t datagram_magic = 0x0462'7268;  ///< "hrb" and the version
inline constexpr std::size_t fixed_header_bytes = 40;
inline constexpr std::size_t selective_words_max = 4;
inline constexpr std::size_t header_bytes_max = fixed_header_bytes + 8 * selective_words_max;
inline constexpr std::uint8_t flag_answer_now = 1;  ///< the sender waits for the acknowledgement

struct DatagramHeader {
    std::uint8_t flags = 0;
    std::uint8_t selective_words = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint64_t sequence = 0;      ///< of this datagram; 0: it only acknowledges
    std::uint64_t acknowledged = 0;  ///< everything up to here was executed; below 2^48
    std::uint16_t arrived = 0;       ///< datagrams with a sequence that came, modulo 2^16
    /// Bit i of word w: acknowledged + 1 + 64 w + i has arrived.
    std::uint64_t selective[selective_words_max] = {};

    std::size_t bytes() const noexcept {
        return fixed_header_bytes + std::size_t{8} * selective_words;
    }
};

enum class RecordKind : std::uint8_t {
    message,      ///< a part of a message
    put,          ///< bytes for the receiver's memory
    get,          ///< asks for bytes
    got,          ///< the next bytes of an answer
    atomic,       ///< payload: operand, expected
    atomic_done,  ///< payload: the value before
    wake,         ///< rings for the sleepers of a role
    kick,         ///< 1, 2, 4 or 8 aligned bytes for the receiver's memory, stored at once
    count
};

/// What precedes each piece of work; the payload follows, padded to 8 bytes.
struct WireRecord {
    RecordKind kind = RecordKind::message;
    std::uint8_t sub = 0;  ///< MessageKind, AtomicOp or Sleeper
    std::uint16_t payload_bytes = 0;
    std::uint32_t tag = 0;     ///< get, atomic: the asker's slot, returned by the answer
    std::uint64_t offset = 0;  ///< in the region, in the message or in the answer
    std::uint32_t region = 0;
    std::uint32_t total_bytes = 0;  ///< of the whole message or answer
};
inline constexpr std::size_t wire_record_bytes = 24;

constexpr std::size_t padded_record_bytes(std::size_t payload_bytes) {
    return wire_record_bytes + round_up(payload_bytes, 8);
}

/// Writes the header and the authenticator over `header.bytes()` bytes just before `body`.
/// @param body  its `header.bytes()` bytes in front must be writable
/// @return the start of the datagram
std::byte* seal_datagram(const DatagramHeader& header, const DirectionKey& key, std::byte* body,
                         std::size_t body_bytes) noexcept;

/// Writes the datagram to `to`, encrypted.
/// @param to  header.bytes() + body.size() + tag_bytes, nowhere in `body`
/// @return its bytes
std::size_t encrypt_datagram(const DatagramHeader& header, DirectionCipher& cipher, Bytes body,
                             std::byte* to) noexcept;

/// The size of each but the last, perhaps shorter, of several datagrams that a card or the system
/// joined (GRO), seen from the lengths they carry; all of `bytes` when they are one, or make no
/// sense together. At least 1.
std::size_t joined_bytes(Bytes bytes) noexcept;

/// Why a datagram was not opened; counted by the receiver.
enum class Refusal : std::uint8_t {
    none,
    truncated,
    foreign,
    misdirected,
    forged,
    malformed,
    count
};

/// Reads the sender's rank, which tells the key: `truncated`, `foreign` (not ours or another
/// version) or `misdirected` (not for `self`, or from outside the job) when there is none.
Refusal sender_of(Bytes datagram, std::uint32_t self, std::uint32_t nodes,
                  std::uint32_t& from) noexcept;

/// Checks everything else. After Refusal::none, the header is right and records_of() may be walked.
Refusal open_datagram(Bytes datagram, const DirectionKey& key, DatagramHeader& header) noexcept;

/// The same for an encrypted datagram, decrypted in place. After Refusal::none, `datagram` ends
/// with its last record.
Refusal decrypt_datagram(MutableBytes& datagram, DirectionCipher& cipher,
                         DatagramHeader& header) noexcept;

inline Bytes records_of(Bytes datagram, const DatagramHeader& header) noexcept {
    return datagram.subspan(header.bytes());
}

/// Appends a record at `at`, which has padded_record_bytes() bytes of room.
inline void encode_wire_record(const WireRecord& record, const std::byte* payload,
                               std::byte* at) noexcept {
    std::memcpy(at, &record.kind, 1);
    std::memcpy(at + 1, &record.sub, 1);
    std::memcpy(at + 2, &record.payload_bytes, 2);
    std::memcpy(at + 4, &record.tag, 4);
    std::memcpy(at + 8, &record.offset, 8);
    std::memcpy(at + 16, &record.region, 4);
    std::memcpy(at + 20, &record.total_bytes, 4);
    const std::size_t padded = round_up(record.payload_bytes, 8);
    if (padded != 0) {
        std::memset(at + wire_record_bytes + padded - 8, 0, 8);
        if (payload != nullptr) std::memcpy(at + wire_record_bytes, payload, record.payload_bytes);
    }
}

/// A kick as it travels: made once for all kicks of `bytes` (1, 2, 4 or 8) to a region; only where
/// and what are patched into each.
inline constexpr std::size_t kick_record_bytes = padded_record_bytes(8);
inline void encode_kick_record(std::uint32_t region, std::uint16_t bytes, std::byte* at) noexcept {
    encode_wire_record({.kind = RecordKind::kick, .payload_bytes = bytes, .region = region},
                       nullptr, at);
}
/// @param value  as its bytes lie in memory, the rest zero
inline void patch_kick_record(std::uint64_t offset, std::uint64_t value, std::byte* at) noexcept {
    std::memcpy(at + 8, &offset, 8);
    std::memcpy(at + wire_record_bytes, &value, 8);
}

/// Takes the record at the start of `records`; false when there is no whole one.
bool decode_wire_record(Bytes records, WireRecord& record, Bytes& payload) noexcept;

}  // namespace hiroba::net::wire
