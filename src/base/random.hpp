// SPDX-License-Identifier: BSD-3-Clause
// Role: repeatable pseudo-random numbers for simulations and tests; nothing here is a secret.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014
// (SplitMix64).
#pragma once

#include <cstdint>

namespace hiroba {

/// Equal seeds give equal numbers, on every machine. Thread: one.
class Random {
public:
    explicit Random(std::uint64_t seed) noexcept : state_(seed) {}
    std::uint64_t operator()() noexcept {
        std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15u;
        z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9u;
        z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBu;
        return z ^ (z >> 31);
    }
    /// From 0 to bound - 1; bound at least 1.
    std::uint64_t below(std::uint64_t bound) noexcept { return (*this)() % bound; }
    bool happens(std::uint32_t percent) noexcept { return percent != 0 && below(100) < percent; }

private:
    std::uint64_t state_;
};

}  // namespace hiroba
