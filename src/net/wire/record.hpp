// SPDX-License-Identifier: BSD-3-Clause
// Role: the eight bytes in front of each message in a queue of shared memory.
// Invariant: native byte order, since both ends run on one host; every read is checked by the
// reader, because the bytes were written by another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hiroba::net::wire {

/// What precedes a message's body.
struct Record {
    std::uint32_t body_bytes = 0;
    std::uint8_t kind = 0;  ///< a MessageKind, or skip_kind
};

inline constexpr std::size_t record_header_bytes = 8;
/// Marks the unused end of the queue: the next record starts at its beginning.
inline constexpr std::uint8_t skip_kind = 0xff;

inline void encode_record(const Record& record, std::byte* at) noexcept {
    const std::uint64_t word = record.body_bytes | std::uint64_t{record.kind} << 32;
    std::memcpy(at, &word, sizeof word);
}

inline Record decode_record(const std::byte* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return {static_cast<std::uint32_t>(word), static_cast<std::uint8_t>(word >> 32)};
}

}  // namespace hiroba::net::wire
