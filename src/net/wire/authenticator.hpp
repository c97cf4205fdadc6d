// SPDX-License-Identifier: BSD-3-Clause
// Role: the 64 bits that show a datagram to come from the job: SipHash of a small one; of a larger
// one, SipHash of its beginning, of a universal hash of each kilobyte behind that, and of its
// length.
// Source: SipHash: Aumasson & Bernstein, INDOCRYPT 2012 (siphash.hpp); NH: Black, Halevi, Krawczyk,
// Krovetz & Rogaway, "UMAC: fast and secure message authentication", CRYPTO 1999, section 4, with
// words of 64 bits as in Krovetz, "Message authentication on 64-bit architectures", SAC 2006.
// Invariant: no state, no allocation, no system call: it runs below page faults
// (docs/decisions/datagram-authenticator.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "net/wire/siphash.hpp"

namespace hiroba::net::wire {

/// So much is hashed at once, with as long a key.
inline constexpr std::size_t hashed_part_bytes = 1024;
/// The secret words of NH, one for each of a part.
using PartKey = std::array<std::uint64_t, hashed_part_bytes / 8>;

/// The words of NH for all of a job: only a direction's own function is given what they hash to.
PartKey part_key(const HashKey& job) noexcept;

/// The keys of one direction between two nodes; from them no other direction's follow.
struct DirectionKey {
    HashKey small;  ///< of whole small datagrams
    HashKey joint;  ///< of what larger ones were made into
    const PartKey* parts = nullptr;
};

/// @param from, to  numbers that each end drew at random for this run
/// @param parts  the job's; must live as long as the key
DirectionKey direction_key(const HashKey& job, const PartKey& parts, std::uint64_t from,
                           std::uint64_t to) noexcept;
/// DirectionKey::small alone.
HashKey small_key(const HashKey& job, std::uint64_t from, std::uint64_t to) noexcept;

/// Without the key it is found only by guessing.
std::uint64_t authenticator(const DirectionKey& key, Bytes datagram) noexcept;

// --- the parts, for tests ------------------------------------------------------------------------

/// Larger datagrams are hashed in parts, behind their first `whole_bytes`: the header, with the
/// number that no other datagram has.
inline constexpr std::size_t small_bytes_max = 128;
inline constexpr std::size_t whole_bytes = 64;

struct PartHash {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    constexpr bool operator==(const PartHash&) const = default;
};

/// NH of at most hashed_part_bytes, zeros behind them: two parts of one length that differ have the
/// same with probability 2^-64.
PartHash part_hash(const PartKey& key, Bytes part) noexcept;

}  // namespace hiroba::net::wire
