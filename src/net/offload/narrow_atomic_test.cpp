// SPDX-License-Identifier: BSD-3-Clause
// Role: atomics of four bytes carried out by a word that is changed by others in between.
#include "net/offload/narrow_atomic.hpp"

#include <gtest/gtest.h>

namespace hiroba::net::offload {
namespace {

/// What a provider does with the word.
std::uint64_t apply(std::uint64_t& word, const WideAtomic& wide) {
    const std::uint64_t old = word;
    switch (wide.op) {
        case AtomicOp::fetch_add: word += wide.operand; break;
        case AtomicOp::fetch_and: word &= wide.operand; break;
        case AtomicOp::fetch_or: word |= wide.operand; break;
        case AtomicOp::fetch_xor: word ^= wide.operand; break;
        case AtomicOp::swap: word = wide.operand; break;
        case AtomicOp::compare_swap:
            if (word == wide.expected) word = wide.operand;
            break;
    }
    return old;
}

std::uint32_t narrow(AtomicOp op, std::uint32_t value, std::uint32_t operand,
                     std::uint32_t expected) {
    switch (op) {
        case AtomicOp::fetch_add: return value + operand;
        case AtomicOp::fetch_and: return value & operand;
        case AtomicOp::fetch_or: return value | operand;
        case AtomicOp::fetch_xor: return value ^ operand;
        case AtomicOp::swap: return operand;
        case AtomicOp::compare_swap: return value == expected ? operand : value;
    }
    return 0;
}

constexpr AtomicOp every_op[] = {AtomicOp::fetch_add, AtomicOp::fetch_and, AtomicOp::fetch_or,
                                 AtomicOp::fetch_xor, AtomicOp::swap,      AtomicOp::compare_swap};

TEST(NarrowAtomic, changes_its_half_as_asked_and_leaves_the_other_alone) {
    constexpr std::uint64_t start = 0xffff'fff0'8000'0001;
    for (const AtomicOp op : every_op) {
        for (const std::uint64_t offset : {8u, 12u}) {
            const unsigned shift = half_shift(offset);
            for (const std::uint32_t operand : {0u, 5u, 0xffff'ffffu}) {
                for (const std::uint32_t expected : {7u, half_of(start, shift)}) {
                    std::uint64_t word = start;
                    std::uint64_t guess = first_guess(op, expected, shift);
                    std::uint64_t found = 0;
                    int tries = 0;
                    do {
                        found = apply(word, widen(op, operand, guess, shift));
                        ++tries;
                    } while (!is_decided(op, guess, found, expected, shift) &&
                             (guess = found, true));
                    EXPECT_LE(tries, 2);
                    EXPECT_EQ(half_of(found, shift), half_of(start, shift));
                    const std::uint32_t want = narrow(op, half_of(start, shift), operand, expected);
                    EXPECT_EQ(word, with_half(start, want, shift))
                        << static_cast<int>(op) << " at " << offset << " of " << operand;
                }
            }
        }
    }
}

TEST(NarrowAtomic, guesses_again_when_the_other_half_has_changed) {
    std::uint64_t word = with_half(41, 1, 32);
    const std::uint64_t guess = word;
    word = with_half(word, 2, 32);  // another node
    const std::uint64_t found = apply(word, widen(AtomicOp::fetch_add, 1, guess, 0));
    EXPECT_FALSE(is_decided(AtomicOp::fetch_add, guess, found, 0, 0));
    EXPECT_EQ(apply(word, widen(AtomicOp::fetch_add, 1, found, 0)), found);
    EXPECT_EQ(word, with_half(42, 2, 32));
}

}  // namespace
}  // namespace hiroba::net::offload
