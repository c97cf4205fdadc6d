// SPDX-License-Identifier: BSD-3-Clause
// Role: what became of the requests that were under way when a reliable connection broke, told by
// the number of the packet that its other end expected next: a device carries out packets in their
// order, so it has done all before that number and nothing from it on (InfiniBand Architecture
// Specification 1.4, 9.7.1).
// Invariant: pure. Packets are numbered modulo 2^24.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::net::verbs {

constexpr std::uint32_t packet_mask = (1u << 24) - 1;

/// How many numbers a request takes. Reads take those of their answers.
constexpr std::uint32_t packets_of(std::size_t bytes, std::size_t mtu_bytes) noexcept {
    return bytes <= mtu_bytes ? 1u
                              : static_cast<std::uint32_t>((bytes + mtu_bytes - 1) / mtu_bytes);
}

/// Whether all packets before `end` are before `expected`; both within 2^23 of each other.
constexpr bool is_done(std::uint32_t end, std::uint32_t expected) noexcept {
    return ((expected - end) & packet_mask) < 1u << 23;
}

enum class Change : std::uint8_t { sends, reads, atomic };
enum class Fate : std::uint8_t {
    carried_out,  ///< only the acknowledgement is missing
    repeat,       ///< it was not carried out, or does no harm a second time
    unknown       ///< it was carried out, and what it found is lost
};

/// @param end  the number after its last packet
/// @param expected  by the other end when it gave up
constexpr Fate fate_of(Change change, std::uint32_t end, std::uint32_t expected) noexcept {
    if (change == Change::reads || !is_done(end, expected)) return Fate::repeat;
    return change == Change::sends ? Fate::carried_out : Fate::unknown;
}

}  // namespace hiroba::net::verbs
