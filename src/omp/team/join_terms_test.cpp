// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/join_terms.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace hiroba::omp {
namespace {

constexpr TermArithmetic sum_of_ints{TermOperator::add, false, 4};

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

template <class Value>
Value applied(const TermArithmetic& how, Value variable, std::uint64_t term) {
    apply({reinterpret_cast<std::uintptr_t>(&variable), term, how});
    return variable;
}

TEST(JoinTerms, change_the_variable_as_the_instruction_would) {
    using enum TermOperator;
    EXPECT_EQ(applied(sum_of_ints, 7, static_cast<std::uint64_t>(-9)), -2);
    EXPECT_EQ(applied({add, false, 8}, 1l << 40, 5), (1l << 40) + 5);
    EXPECT_EQ(applied<std::uint8_t>({add, false, 1}, 250, 10), 4);
    EXPECT_EQ(applied<std::uint16_t>({xor_, false, 2}, 0x0ff0, 0xffff), 0xf00f);
    EXPECT_EQ(applied<std::uint8_t>({or_, false, 1}, 0x40, 0x01), 0x41);
    EXPECT_EQ(applied({and_, false, 4}, 0x7f, 0xf0u), 0x70);
    EXPECT_EQ(applied({add, true, 8}, 1.5, bits(2.25)), 3.75);
    EXPECT_EQ(applied({multiply, true, 4}, 1.5f, bits(4.0f)), 6.0f);
    EXPECT_EQ(applied({least, true, 8}, 1.5, bits(-2.0)), -2.0);
    EXPECT_EQ(applied({greatest, true, 4}, 1.5f, bits(-2.0f)), 1.5f);
}

TEST(JoinTerms, of_what_is_no_number_the_second_operand_counts) {
    const double no_number = std::numeric_limits<double>::quiet_NaN();
    using enum TermOperator;
    EXPECT_EQ(applied({greatest, true, 8}, no_number, bits(2.0)), 2.0);
    EXPECT_TRUE(std::isnan(applied({greatest, true, 8, true}, no_number, bits(2.0))));
    EXPECT_EQ(applied({least, true, 8, true}, 3.0, bits(no_number)), 3.0);
}

TEST(JoinTerms, neighbours_of_the_variable_stay) {
    std::uint32_t words[3] = {1, 2, 3};
    apply({reinterpret_cast<std::uintptr_t>(&words[1]), ~std::uint64_t{0}, sum_of_ints});
    EXPECT_EQ(words[0], 1u);
    EXPECT_EQ(words[1], 1u);
    EXPECT_EQ(words[2], 3u);
}

TEST(JoinTerms, come_beside_atomics_of_other_threads) {
    constexpr std::uint64_t applied = 5'000'000;
    std::uint64_t variable = 0, others = 0;
    std::atomic<bool> begun{false}, over{false};
    std::thread other{[&] {
        for (begun = true; !over.load(std::memory_order_relaxed); ++others)
            __atomic_fetch_add(&variable, 1, __ATOMIC_RELAXED);
    }};
    while (!begun) std::this_thread::yield();
    for (std::uint64_t i = 0; i < applied; ++i)
        apply({reinterpret_cast<std::uintptr_t>(&variable), 1, {TermOperator::add, false, 8}});
    over = true;
    other.join();
    EXPECT_EQ(variable, applied + others);
}

TEST(JoinTerms, are_one_for_each_variable_and_operator_and_there_is_room_for_four) {
    JoinTerms terms;
    for (std::uintptr_t variable = 0; variable < JoinTerms::most; ++variable)
        EXPECT_TRUE(terms.add({variable, 1, sum_of_ints}));
    EXPECT_FALSE(terms.add({JoinTerms::most, 1, sum_of_ints}));
    EXPECT_FALSE(terms.add({0, 1, {TermOperator::xor_, false, 4}}));
    EXPECT_TRUE(terms.add({2, 41, sum_of_ints}));
    JoinTerms::List list;
    ASSERT_EQ(terms.take(list), JoinTerms::most);
    EXPECT_EQ(list[1].value, 1u);
    EXPECT_EQ(list[2].value, 42u);
    EXPECT_EQ(terms.take(list), 0u);
}

TEST(JoinTerms, of_many_threads_none_is_lost) {
    JoinTerms terms;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&terms] {
            for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(terms.add({64, 1, sum_of_ints}));
        });
    for (std::thread& thread : threads) thread.join();
    JoinTerms::List list;
    ASSERT_EQ(terms.take(list), 1u);
    EXPECT_EQ(list[0].value, 40'000u);
}

}  // namespace
}  // namespace hiroba::omp
