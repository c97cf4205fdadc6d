// SPDX-License-Identifier: BSD-3-Clause
// Role: the 64 bits that show a datagram to come from the job: SipHash of a small one; of a large
// one, 16 SipHashes of its words dealt in turn to as many lanes, and one more over those.
// Source: Aumasson & Bernstein, INDOCRYPT 2012 (siphash.hpp); lanes: Gueron & Krasnov,
// "Simultaneous hashing of multiple messages", 2012. Invariant: no state, no allocation, no system
// call: it runs below page faults (docs/decisions/datagram-authenticator.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "net/wire/siphash.hpp"

namespace hiroba::net::wire {

/// The keys of one direction between two nodes; from them no other direction's follow.
struct DirectionKey {
    HashKey small;  ///< of whole small datagrams
    HashKey lanes;
    HashKey joint;  ///< of what the lanes gave
};

/// @param from, to  numbers that each end drew at random for this run
DirectionKey direction_key(const HashKey& job, std::uint64_t from, std::uint64_t to) noexcept;

/// Without the key it is found only by guessing.
std::uint64_t authenticator(const DirectionKey& key, Bytes datagram) noexcept;

// --- the parts, for tests ------------------------------------------------------------------------

inline constexpr std::size_t lanes_count = 16;
inline constexpr std::size_t stripe_bytes = 8 * lanes_count;
/// Smaller datagrams are not worth the lanes.
inline constexpr std::size_t lanes_bytes_min = 1024;

using LaneHashes = std::array<std::uint64_t, lanes_count>;

/// The hash of each lane of `stripes`, of which there are `count`: SipHash of the lane's number and
/// its words. The versions agree; each needs what its name says of the processor.
void hash_lanes_portable(const HashKey& key, const std::byte* stripes, std::size_t count,
                         LaneHashes& hashes) noexcept;
void hash_lanes_avx2(const HashKey& key, const std::byte* stripes, std::size_t count,
                     LaneHashes& hashes) noexcept;
void hash_lanes_avx512(const HashKey& key, const std::byte* stripes, std::size_t count,
                       LaneHashes& hashes) noexcept;

}  // namespace hiroba::net::wire
