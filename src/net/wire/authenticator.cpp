// SPDX-License-Identifier: BSD-3-Clause
// Role: see authenticator.hpp. Vectors are the compiler's own, of all lanes at once: it splits them
// into as many registers as the processor's width asks for.
#include "net/wire/authenticator.hpp"

#include <bit>
#include <cstring>
#include <span>

namespace hiroba::net::wire {
namespace {

static_assert(std::endian::native == std::endian::little);

using Lanes = std::uint64_t __attribute__((vector_size(stripe_bytes)));

/// SipHash-2-4 in each lane (siphash.cpp has it for one). Everything is inlined, so that it is
/// compiled for the processor of the function it stands in.
struct LaneState {
    Lanes v0, v1, v2, v3;

    [[gnu::always_inline]] explicit LaneState(const HashKey& key) noexcept
        : v0(Lanes{} + (key.low ^ 0x736f'6d65'7073'6575u)),
          v1(Lanes{} + (key.high ^ 0x646f'7261'6e64'6f6du)),
          v2(Lanes{} + (key.low ^ 0x6c79'6765'6e65'7261u)),
          v3(Lanes{} + (key.high ^ 0x7465'6462'7974'6573u)) {}

    template <int Bits>
    [[gnu::always_inline]] static void rotate(Lanes& v) noexcept {
        v = (v << Bits) | (v >> (64 - Bits));
    }
    [[gnu::always_inline]] void round() noexcept {
        v0 += v1;
        rotate<13>(v1);
        v1 ^= v0;
        rotate<32>(v0);
        v2 += v3;
        rotate<16>(v3);
        v3 ^= v2;
        v0 += v3;
        rotate<21>(v3);
        v3 ^= v0;
        v2 += v1;
        rotate<17>(v1);
        v1 ^= v2;
        rotate<32>(v2);
    }
    [[gnu::always_inline]] void absorb(const Lanes& words) noexcept {
        v3 ^= words;
        round();
        round();
        v0 ^= words;
    }
};

[[gnu::always_inline]] inline void hash_lanes(const HashKey& key, const std::byte* stripes,
                                              std::size_t count, LaneHashes& hashes) noexcept {
    LaneState state{key};
    Lanes words;
    for (std::size_t lane = 0; lane < lanes_count; ++lane) words[lane] = lane;
    state.absorb(words);
    for (std::size_t stripe = 0; stripe < count; ++stripe) {
        std::memcpy(&words, stripes + stripe * stripe_bytes, sizeof words);
        state.absorb(words);
    }
    state.absorb(Lanes{} + ((count + 1) * 8 << 56));  // as SipHash ends a message of so many bytes
    state.v2 ^= Lanes{} + 0xff;
    for (int i = 0; i < 4; ++i) state.round();
    words = state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
    std::memcpy(hashes.data(), &words, sizeof words);
}

void hash_lanes_best(const HashKey& key, const std::byte* stripes, std::size_t count,
                     LaneHashes& hashes) noexcept {
    if (__builtin_cpu_supports("avx512f")) return hash_lanes_avx512(key, stripes, count, hashes);
    if (__builtin_cpu_supports("avx2")) return hash_lanes_avx2(key, stripes, count, hashes);
    hash_lanes_portable(key, stripes, count, hashes);
}

}  // namespace

void hash_lanes_portable(const HashKey& key, const std::byte* stripes, std::size_t count,
                         LaneHashes& hashes) noexcept {
    hash_lanes(key, stripes, count, hashes);
}

[[gnu::target("avx2")]] void hash_lanes_avx2(const HashKey& key, const std::byte* stripes,
                                             std::size_t count, LaneHashes& hashes) noexcept {
    hash_lanes(key, stripes, count, hashes);
}

[[gnu::target("avx512f")]] void hash_lanes_avx512(const HashKey& key, const std::byte* stripes,
                                                  std::size_t count, LaneHashes& hashes) noexcept {
    hash_lanes(key, stripes, count, hashes);
}

std::uint64_t authenticator(const DirectionKey& key, Bytes datagram) noexcept {
    if (datagram.size() < lanes_bytes_min) return siphash(key.small, datagram);
    const std::size_t stripes = datagram.size() / stripe_bytes;
    const Bytes rest = datagram.subspan(stripes * stripe_bytes);
    // What the lanes gave, how long the datagram is, and what filled no stripe.
    std::array<std::byte, stripe_bytes + 8 + stripe_bytes> joint;
    LaneHashes hashes;
    hash_lanes_best(key.lanes, datagram.data(), stripes, hashes);
    std::memcpy(joint.data(), hashes.data(), stripe_bytes);
    const std::uint64_t bytes = datagram.size();
    std::memcpy(joint.data() + stripe_bytes, &bytes, 8);
    if (!rest.empty()) std::memcpy(joint.data() + stripe_bytes + 8, rest.data(), rest.size());
    return siphash(key.joint, {joint.data(), stripe_bytes + 8 + rest.size()});
}

DirectionKey direction_key(const HashKey& job, std::uint64_t from, std::uint64_t to) noexcept {
    std::uint64_t words[3] = {from, to, 0};
    const auto next = [&] {
        const std::uint64_t hash = siphash(job, std::as_bytes(std::span(words)));
        ++words[2];
        return hash;
    };
    DirectionKey key;
    for (HashKey* part : {&key.small, &key.lanes, &key.joint}) {
        part->low = next();
        part->high = next();
    }
    return key;
}

}  // namespace hiroba::net::wire
