// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/xoshiro.hpp"

#include <gtest/gtest.h>

namespace hiroba::abi {
namespace {

TEST(Xoshiro, its_first_numbers_are_those_of_the_paper_s_program) {
    Xoshiro generator{{1, 2, 3, 4}};
    EXPECT_EQ(generator.next(), 11520u);
    EXPECT_EQ(generator.next(), 0u);
    EXPECT_EQ(generator.next(), 1509978240u);
}

TEST(Xoshiro, a_jump_and_a_step_may_change_places) {
    Xoshiro one{{1, 2, 3, 4}}, other = one;
    one.jump();
    one.next();
    other.next();
    other.jump();
    EXPECT_EQ(one.s, other.s);
    EXPECT_NE(one.s, (Xoshiro{{1, 2, 3, 4}}.s));
}

}  // namespace
}  // namespace hiroba::abi
