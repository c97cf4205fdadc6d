// SPDX-License-Identifier: BSD-3-Clause
// Role: the keyed hash beneath what authenticates datagrams (authenticator.hpp): SipHash-2-4 with
// 64 bits of output. Source: Aumasson & Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT
// 2012; the tests are its reference vectors. Invariant: no allocation, no system call: it runs
// below page faults (docs/decisions/datagram-authenticator.md).
#pragma once

#include <bit>
#include <cstdint>

#include "base/bytes.hpp"

namespace hiroba::net::wire {

/// 128 secret bits.
struct HashKey {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    constexpr bool operator==(const HashKey&) const = default;
};

/// The hash of words as they come. Thread: its maker's.
class SipHash {
public:
    explicit SipHash(const HashKey& key) noexcept
        : v0_(key.low ^ 0x736f'6d65'7073'6575u),
          v1_(key.high ^ 0x646f'7261'6e64'6f6du),
          v2_(key.low ^ 0x6c79'6765'6e65'7261u),
          v3_(key.high ^ 0x7465'6462'7974'6573u) {}

    void absorb(std::uint64_t word) noexcept {
        v3_ ^= word;
        round();
        round();
        v0_ ^= word;
    }
    /// @param last  the bytes behind the last whole word, with the length of all in its top byte
    std::uint64_t finish(std::uint64_t last) noexcept {
        absorb(last);
        v2_ ^= 0xff;
        for (int i = 0; i < 4; ++i) round();
        return v0_ ^ v1_ ^ v2_ ^ v3_;
    }

private:
    void round() noexcept {
        v0_ += v1_;
        v1_ = std::rotl(v1_, 13) ^ v0_;
        v0_ = std::rotl(v0_, 32);
        v2_ += v3_;
        v3_ = std::rotl(v3_, 16) ^ v2_;
        v0_ += v3_;
        v3_ = std::rotl(v3_, 21) ^ v0_;
        v2_ += v1_;
        v1_ = std::rotl(v1_, 17) ^ v2_;
        v2_ = std::rotl(v2_, 32);
    }

    std::uint64_t v0_, v1_, v2_, v3_;
};

/// The hash of `bytes`, as a little-endian number.
std::uint64_t siphash(const HashKey& key, Bytes bytes) noexcept;

}  // namespace hiroba::net::wire
