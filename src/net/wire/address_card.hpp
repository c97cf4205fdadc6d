// SPDX-License-Identifier: BSD-3-Clause
// Role: what a node tells its peers about its shared memory when they meet.
// Invariant: fixed size (the control channel gathers equal sizes). Nodes whose cards differ in
// anything but the rank do not belong to one job and must not map each other's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/bytes.hpp"

namespace hiroba::net::wire {

/// As many regions are named where nodes have different ones.
inline constexpr std::size_t named_regions_max = 32;

/// Goes along with the descriptor of the node's memory.
struct AddressCard {
    std::uint64_t version = 0;  ///< of the memory's layout
    std::uint64_t job_key = 0;
    std::uint64_t node = 0;  ///< the sender's rank
    std::uint64_t nodes = 0;
    std::uint64_t regions = 0;                                    ///< how many were allocated
    std::uint64_t regions_hash = 0;                               ///< over their sizes, in order
    std::array<std::uint64_t, named_regions_max> region_bytes{};  ///< of the first ones
    std::uint64_t memory_bytes = 0;                               ///< of the whole memory
};

/// Adds a region to what the card says of this node's memory.
void add_region(AddressCard& card, std::uint64_t bytes) noexcept;

/// Why `theirs`, which `rank` sent, cannot be in one job with `mine`; empty when it can.
std::string card_difference(const AddressCard& mine, const AddressCard& theirs, std::uint32_t rank);

/// What a node adds that is reached by datagrams.
struct DatagramCard {
    AddressCard common;
    std::uint64_t drawn = 0;  ///< at random for this run; makes the keys of its directions
    std::uint64_t host = 0;   ///< equal on one host alone
    std::uint8_t address[16] = {};
    std::uint16_t port = 0;
    std::uint16_t family = 0;  ///< 4 or 6
    std::uint32_t scope = 0;
    std::uint32_t encrypts = 0;  ///< whether the node's datagrams are encrypted
    std::uint32_t has_aes = 0;   ///< its processor
};

using AddressCardBytes = std::array<std::byte, sizeof(AddressCard)>;

inline AddressCardBytes encode_address_card(const AddressCard& card) noexcept {
    AddressCardBytes bytes;
    std::memcpy(bytes.data(), &card, sizeof card);
    return bytes;
}

/// False when `bytes` has another size than a card.
inline bool decode_address_card(Bytes bytes, AddressCard& card) noexcept {
    if (bytes.size() != sizeof card) return false;
    std::memcpy(&card, bytes.data(), sizeof card);
    return true;
}

}  // namespace hiroba::net::wire
