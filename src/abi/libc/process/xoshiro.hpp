// SPDX-License-Identifier: BSD-3-Clause
// Role: xoshiro256**, the generator of Fortran's random_number: its step, and the jump by 2^128
// steps by which libgfortran tells the streams of threads apart.
// Source: D. Blackman and S. Vigna, Scrambled linear pseudorandom number generators, 2018.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace hiroba::abi {

struct Xoshiro {
    std::array<std::uint64_t, 4> s{};

    constexpr std::uint64_t next() noexcept {
        const std::uint64_t result = std::rotl(s[1] * 5, 7) * 9;
        const std::uint64_t shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = std::rotl(s[3], 45);
        return result;
    }
    constexpr void jump() noexcept {
        constexpr std::uint64_t polynomial[] = {0x180ec6d33cfd0aba, 0xd5a61266f0c9392c,
                                                0xa9582618e03fc9aa, 0x39abdc4529b1661c};
        std::array<std::uint64_t, 4> sum{};
        for (const std::uint64_t word : polynomial) {
            for (int bit = 0; bit < 64; ++bit) {
                if ((word >> bit & 1) != 0)
                    for (unsigned i = 0; i < 4; ++i) sum[i] ^= s[i];
                next();
            }
        }
        s = sum;
    }
};

}  // namespace hiroba::abi
