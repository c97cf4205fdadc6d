// SPDX-License-Identifier: BSD-3-Clause
// Role: see authenticator.hpp. Vectors are the compiler's own, as wide as the processor's.
#include "net/wire/authenticator.hpp"

#include <bit>
#include <cstring>
#include <span>

namespace hiroba::net::wire {
namespace {

static_assert(std::endian::native == std::endian::little);

/// SipHash-2-4 in the lanes of two vectors of `Width` bytes (siphash.cpp has it for one lane): two,
/// because one alone waits for itself. Everything is inlined, so that it is compiled for the
/// processor of the function it stands in.
template <std::size_t Width>
struct LaneState {
    // Not `using`: gcc 12 forgets an attribute that depends on the template.
    typedef std::uint64_t Vector __attribute__((vector_size(Width)));
    static_assert(sizeof(Vector) == Width);
    static constexpr std::size_t lanes = 2 * Width / 8;
    Vector v0[2], v1[2], v2[2], v3[2];

    [[gnu::always_inline]] explicit LaneState(const HashKey& key) noexcept {
        for (int i = 0; i < 2; ++i) {
            v0[i] = Vector{} + (key.low ^ 0x736f'6d65'7073'6575u);
            v1[i] = Vector{} + (key.high ^ 0x646f'7261'6e64'6f6du);
            v2[i] = Vector{} + (key.low ^ 0x6c79'6765'6e65'7261u);
            v3[i] = Vector{} + (key.high ^ 0x7465'6462'7974'6573u);
        }
    }
    template <int Bits>
    [[gnu::always_inline]] static void rotate(Vector& v) noexcept {
        v = (v << Bits) | (v >> (64 - Bits));
    }
    [[gnu::always_inline]] void round() noexcept {
        for (int i = 0; i < 2; ++i) {
            v0[i] += v1[i];
            rotate<13>(v1[i]);
            v1[i] ^= v0[i];
            rotate<32>(v0[i]);
            v2[i] += v3[i];
            rotate<16>(v3[i]);
            v3[i] ^= v2[i];
            v0[i] += v3[i];
            rotate<21>(v3[i]);
            v3[i] ^= v0[i];
            v2[i] += v1[i];
            rotate<17>(v1[i]);
            v1[i] ^= v2[i];
            rotate<32>(v2[i]);
        }
    }
    /// One word for each lane.
    [[gnu::always_inline]] void absorb(const void* words) noexcept {
        Vector w[2];
        std::memcpy(w, words, sizeof w);
        for (int i = 0; i < 2; ++i) v3[i] ^= w[i];
        round();
        round();
        for (int i = 0; i < 2; ++i) v0[i] ^= w[i];
    }
    [[gnu::always_inline]] void finish(std::uint64_t* hashes) noexcept {
        for (int i = 0; i < 2; ++i) v2[i] ^= Vector{} + 0xff;
        for (int i = 0; i < 4; ++i) round();
        Vector hash[2];
        for (int i = 0; i < 2; ++i) hash[i] = v0[i] ^ v1[i] ^ v2[i] ^ v3[i];
        std::memcpy(hashes, hash, sizeof hash);
    }
};

template <std::size_t Width>
[[gnu::always_inline]] inline void hash_lanes(const HashKey& key, const std::byte* stripes,
                                              std::size_t count, LaneHashes& hashes) noexcept {
    using State = LaneState<Width>;
    for (std::size_t lane = 0; lane < lanes_count; lane += State::lanes) {
        State state{key};
        std::uint64_t words[State::lanes];
        for (std::size_t i = 0; i < State::lanes; ++i) words[i] = lane + i;
        state.absorb(words);
        for (std::size_t stripe = 0; stripe < count; ++stripe) {
            state.absorb(stripes + stripe * stripe_bytes + 8 * lane);
        }
        // As SipHash ends a message of so many bytes.
        for (std::uint64_t& word : words) word = (count + 1) * 8 << 56;
        state.absorb(words);
        state.finish(hashes.data() + lane);
    }
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
    hash_lanes<16>(key, stripes, count, hashes);
}

[[gnu::target("avx2")]] void hash_lanes_avx2(const HashKey& key, const std::byte* stripes,
                                             std::size_t count, LaneHashes& hashes) noexcept {
    hash_lanes<32>(key, stripes, count, hashes);
}

[[gnu::target("avx512f")]] void hash_lanes_avx512(const HashKey& key, const std::byte* stripes,
                                                  std::size_t count, LaneHashes& hashes) noexcept {
    hash_lanes<64>(key, stripes, count, hashes);
}

std::uint64_t authenticator(const DirectionKey& key, Bytes datagram) noexcept {
    if (datagram.size() < lanes_bytes_min) return siphash(key.small, datagram);
    const std::size_t stripes = datagram.size() / stripe_bytes;
    const Bytes rest = datagram.subspan(stripes * stripe_bytes);
    // The lanes' results, the datagram's length, and the bytes that filled no stripe.
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
