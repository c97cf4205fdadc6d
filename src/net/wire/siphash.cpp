// SPDX-License-Identifier: BSD-3-Clause
// Role: see siphash.hpp. Assumes a little-endian processor, as all of `wire` does.
#include "net/wire/siphash.hpp"

#include <bit>
#include <cstring>

namespace hiroba::net::wire {
namespace {

static_assert(std::endian::native == std::endian::little);

struct State {
    std::uint64_t v0, v1, v2, v3;

    explicit State(const HashKey& key) noexcept
        : v0(key.low ^ 0x736f'6d65'7073'6575u),
          v1(key.high ^ 0x646f'7261'6e64'6f6du),
          v2(key.low ^ 0x6c79'6765'6e65'7261u),
          v3(key.high ^ 0x7465'6462'7974'6573u) {}

    void round() noexcept {
        v0 += v1;
        v1 = std::rotl(v1, 13) ^ v0;
        v0 = std::rotl(v0, 32);
        v2 += v3;
        v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3;
        v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1;
        v1 = std::rotl(v1, 17) ^ v2;
        v2 = std::rotl(v2, 32);
    }
    void absorb(std::uint64_t word) noexcept {
        v3 ^= word;
        round();
        round();
        v0 ^= word;
    }
    std::uint64_t finish() noexcept {
        v2 ^= 0xff;
        for (int i = 0; i < 4; ++i) round();
        return v0 ^ v1 ^ v2 ^ v3;
    }
};

}  // namespace

std::uint64_t siphash(const HashKey& key, Bytes bytes) noexcept {
    State state{key};
    const std::size_t whole = bytes.size() & ~std::size_t{7};
    std::uint64_t word = 0;
    for (std::size_t at = 0; at < whole; at += 8) {
        std::memcpy(&word, bytes.data() + at, 8);
        state.absorb(word);
    }
    word = 0;
    if (bytes.size() > whole) std::memcpy(&word, bytes.data() + whole, bytes.size() - whole);
    state.absorb(word | std::uint64_t{bytes.size()} << 56);
    return state.finish();
}

}  // namespace hiroba::net::wire
