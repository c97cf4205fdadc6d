// SPDX-License-Identifier: BSD-3-Clause
// Role: the keyed hash beneath what authenticates datagrams (authenticator.hpp): SipHash-2-4 with
// 64 bits of output. Source: Aumasson & Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT
// 2012; the tests are its reference vectors. Invariant: no state, no allocation, no system call: it
// runs below page faults (docs/decisions/datagram-authenticator.md).
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace hiroba::net::wire {

/// 128 secret bits.
struct HashKey {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    constexpr bool operator==(const HashKey&) const = default;
};

/// The hash of `bytes`, as a little-endian number.
std::uint64_t siphash(const HashKey& key, Bytes bytes) noexcept;

}  // namespace hiroba::net::wire
