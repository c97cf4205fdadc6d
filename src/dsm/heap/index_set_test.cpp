// SPDX-License-Identifier: BSD-3-Clause
// Role: the set of small numbers against std::set.
#include "dsm/heap/index_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace hiroba::dsm {
namespace {

TEST(IndexSet, gives_its_smallest_member_like_an_ordered_set) {
    auto set = IndexSet::create(300'000);
    ASSERT_TRUE(set);
    std::set<std::uint32_t> model;
    std::mt19937_64 random{3};
    for (int step = 0; step < 50'000; ++step) {
        const auto member = static_cast<std::uint32_t>(random() % (step % 2 ? 300'000 : 500));
        if (random() % 2) {
            set->insert(member);
            model.insert(member);
        } else {
            set->erase(member);
            model.erase(member);
        }
        ASSERT_EQ(set->first(), model.empty() ? IndexSet::none : *model.begin());
    }
}

}  // namespace
}  // namespace hiroba::dsm
