// SPDX-License-Identifier: BSD-3-Clause
#include "omp/team/team_shape.hpp"

#include <gtest/gtest.h>

namespace hiroba::omp {
namespace {

TEST(TeamShape, EveryThreadIsOnOneNodeAndNoNodeHasTwoMoreThanAnother) {
    for (std::uint32_t nodes = 1; nodes <= 9; ++nodes) {
        for (std::uint32_t size = 1; size <= 40; ++size) {
            const TeamShape shape{size, nodes};
            std::uint32_t next = 0, least = size, most = 0, used = 0;
            for (std::uint32_t node = 0; node < nodes; ++node) {
                ASSERT_EQ(shape.first_of(node), next) << size << " over " << nodes;
                next += shape.members_of(node);
                least = std::min(least, shape.members_of(node));
                most = std::max(most, shape.members_of(node));
                used += shape.members_of(node) > 0;
                ASSERT_EQ(node<shape.nodes_used(), shape.members_of(node)> 0);
            }
            ASSERT_EQ(next, size);
            ASSERT_LE(most - least, 1u);
            ASSERT_EQ(used, std::min(size, nodes));
        }
    }
}

}  // namespace
}  // namespace hiroba::omp
