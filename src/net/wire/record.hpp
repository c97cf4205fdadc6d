// SPDX-License-Identifier: BSD-3-Clause
// Role: the eight bytes in front of each message in a queue of shared memory.
// Invariant: native byte order, since both ends run on one host; every read is checked by the
// reader, because the bytes were written by another process. The header is stored last and by one
// store: the reader watches it, and a header of 0 means that no record is there yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hiroba::net::wire {

/// What precedes a message's body.
struct Record {
    std::uint32_t body_bytes = 0;
    std::uint8_t kind = 0;  ///< a MessageKind, or skip_kind
};

inline constexpr std::size_t record_header_bytes = 8;
/// Marks the unused end of the queue: the next record starts at its beginning.
inline constexpr std::uint8_t skip_kind = 0xff;
inline constexpr std::uint64_t record_mark = 1;  ///< so that no header is 0

/// Makes the record visible; what was stored before comes with it.
inline void encode_record(const Record& record, std::byte* at) noexcept {
    const std::uint64_t word =
        record.body_bytes | std::uint64_t{record.kind} << 32 | record_mark << 40;
    std::atomic_ref<std::uint64_t> header(*reinterpret_cast<std::uint64_t*>(at));
    header.store(word, std::memory_order_release);  // pairs with decode_record()
}

/// False while no record is at `at`.
inline bool decode_record(const std::byte* at, Record& record) noexcept {
    auto* place = const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(at));
    const std::uint64_t word =
        std::atomic_ref<std::uint64_t>(*place).load(std::memory_order_acquire);  // encode_record()
    if (word == 0) return false;
    record = {static_cast<std::uint32_t>(word), static_cast<std::uint8_t>(word >> 32)};
    return true;
}

/// True when decode_record() would find one.
inline bool has_record(const std::byte* at) noexcept {
    Record record;
    return decode_record(at, record);
}

/// Takes the header at `at` away, before the place is given back.
inline void clear_record(std::byte* at) noexcept {
    std::atomic_ref<std::uint64_t> header(*reinterpret_cast<std::uint64_t*>(at));
    header.store(0, std::memory_order_relaxed);  // ordered by the release of the queue's head
}

}  // namespace hiroba::net::wire
