// SPDX-License-Identifier: BSD-3-Clause
// Role: atomics of four bytes over providers that know only eight. Pure.
//
// and, or and xor leave the other half alone with an operand that is neutral there, and an addition
// to the upper half carries into nothing. The others become compare-and-swaps of the whole word:
// `expected` is guessed, and what was found instead is the next guess. So every operation is exact,
// and at the target it is one atomic instruction like any other.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net::offload {

/// What to ask the provider for, at the aligned word that holds the half.
struct WideAtomic {
    AtomicOp op{};
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;
};

/// The half of an aligned word at `offset`, a multiple of 4.
constexpr unsigned half_shift(std::uint64_t offset) { return (offset & 4) != 0 ? 32 : 0; }
constexpr std::uint32_t half_of(std::uint64_t word, unsigned shift) {
    return static_cast<std::uint32_t>(word >> shift);
}
constexpr std::uint64_t with_half(std::uint64_t word, std::uint32_t half, unsigned shift) {
    return (word & ~(std::uint64_t{0xffff'ffff} << shift)) | std::uint64_t{half} << shift;
}

/// True when the operation has to guess the word.
constexpr bool guesses(AtomicOp op, unsigned shift) {
    return op == AtomicOp::swap || op == AtomicOp::compare_swap ||
           (op == AtomicOp::fetch_add && shift == 0);
}

/// The first guess: right at once where the other half is zero.
constexpr std::uint64_t first_guess(AtomicOp op, std::uint32_t expected, unsigned shift) {
    return op == AtomicOp::compare_swap ? with_half(0, expected, shift) : 0;
}

/// @param guess  what the word is thought to hold; ignored unless guesses(op, shift)
constexpr WideAtomic widen(AtomicOp op, std::uint32_t operand, std::uint64_t guess,
                           unsigned shift) {
    const std::uint64_t placed = std::uint64_t{operand} << shift;
    if (guesses(op, shift)) {
        const std::uint32_t half =
            op == AtomicOp::fetch_add ? half_of(guess, shift) + operand : operand;
        return {AtomicOp::compare_swap, with_half(guess, half, shift), guess};
    }
    if (op == AtomicOp::fetch_and) return {op, placed | with_half(~0ull, 0, shift), 0};
    return {op, placed, 0};
}

/// True when the word `found` decides the operation; false: guess again, with `found`.
constexpr bool is_decided(AtomicOp op, std::uint64_t guess, std::uint64_t found,
                          std::uint32_t expected, unsigned shift) {
    if (!guesses(op, shift) || found == guess) return true;
    return op == AtomicOp::compare_swap && half_of(found, shift) != expected;
}

}  // namespace hiroba::net::offload
