// SPDX-License-Identifier: BSD-3-Clause
#include "net/wire/siphash.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hiroba::net::wire {
namespace {

constexpr HashKey paper_key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

std::vector<std::byte> counting(std::size_t bytes) {
    std::vector<std::byte> text(bytes);
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<std::byte>(i);
    return text;
}

TEST(Siphash, gives_the_values_of_the_reference) {
    // Appendix A of the paper (15 bytes) and the first vectors of the reference program.
    EXPECT_EQ(siphash(paper_key, counting(15)), 0xa129'ca61'49be'45e5u);
    EXPECT_EQ(siphash(paper_key, counting(0)), 0x726f'db47'dd0e'0e31u);
    EXPECT_EQ(siphash(paper_key, counting(1)), 0x74f8'39c5'93dc'67fdu);
    EXPECT_EQ(siphash(paper_key, counting(2)), 0x0d6c'8009'd9a9'4f5au);
    EXPECT_EQ(siphash(paper_key, counting(8)), 0x93f5'f579'9a93'2462u);
}

}  // namespace
}  // namespace hiroba::net::wire
