// SPDX-License-Identifier: BSD-3-Clause
#include "gas/relocatable/page_word.hpp"

#include <gtest/gtest.h>

#include <set>

#include "gas/relocatable/page_numbers.hpp"

namespace hiroba::gas {
namespace {

TEST(PageWord, comes_back_as_it_was_packed) {
    const PageWord most{true, false, true, true, 1023, 1022, 2u << 20, version_mask};
    EXPECT_EQ(PageWord::unpack(most.pack()), most);
    const PageWord least{};
    EXPECT_EQ(PageWord::unpack(least.pack()), least);
    EXPECT_EQ(least.pack(), 0u);  // fresh memory is a page that is not allocated
    EXPECT_EQ(most.next_version(), 0u);
}

TEST(CacheWord, comes_back_as_it_was_packed) {
    const CacheWord most{PageState::lost, true, 1023, 1022, 1021, version_mask, token_mask};
    EXPECT_EQ(CacheWord::unpack(most.pack()), most);
    EXPECT_EQ(CacheWord{}.pack(), 0u);  // fresh memory is a page that is unknown
    EXPECT_EQ(most.next_token(), 0u);
    EXPECT_TRUE((CacheWord{.state = PageState::stopped}).is_readable());
    EXPECT_FALSE((CacheWord{.state = PageState::leaving}).is_readable());
}

TEST(SpaceShape, gives_each_page_its_own_words_at_its_directory_node) {
    const SpaceShape shape{3, 12, 3 * 16 * 4};
    std::set<std::pair<std::uint32_t, std::uint64_t>> places;
    for (std::uint64_t page = 0; page < shape.pages(); ++page) {
        EXPECT_LT(shape.directory_of(page).value, shape.nodes);
        EXPECT_LT(shape.directory_index(page), shape.directory_pages());
        places.emplace(shape.directory_of(page).value, shape.directory_index(page));
    }
    EXPECT_EQ(places.size(), shape.pages());
}

TEST(SpaceShape, has_a_bit_for_each_rank_in_as_few_words_as_do) {
    EXPECT_EQ((SpaceShape{.nodes = 1}).entry_words(), 2u);
    EXPECT_EQ((SpaceShape{.nodes = 64}).entry_words(), 2u);
    EXPECT_EQ((SpaceShape{.nodes = 65}).entry_words(), 3u);
    EXPECT_EQ((SpaceShape{.nodes = space_nodes_max}).entry_words(), 17u);
}

TEST(RankSet, knows_ranks_of_every_word_apart) {
    RankSet set;
    for (const std::uint32_t rank : {0u, 63u, 64u, 1023u}) {
        EXPECT_FALSE(set.contains(rank));
        set.add(rank);
        EXPECT_TRUE(set.contains(rank));
    }
    EXPECT_EQ(set.word(0), 1u | std::uint64_t{1} << 63);
    EXPECT_EQ(set.word(1), 1u);
    EXPECT_FALSE(set.contains(1));
    EXPECT_FALSE(set.contains(128));
    set |= RankSet::of(128);
    EXPECT_TRUE(set.contains(128));
    EXPECT_TRUE(set.contains(64));
}

TEST(SharedRankSet, counts_each_rank_once) {
    SharedRankSet set;
    set.add(64);
    set.add(64);
    set.add(3);
    EXPECT_EQ(set.count(), 2u);
    EXPECT_TRUE(set.contains(64));
    EXPECT_FALSE(set.contains(0));
    set.clear();
    EXPECT_EQ(set.count(), 0u);
    EXPECT_FALSE(set.contains(64));
}

TEST(PageNumbers, leaves_a_number_free_behind_each_run_and_reuses_the_oldest_last) {
    PageNumbers numbers{1, 21};
    EXPECT_EQ(numbers.take({0, 4, 4 * 4096, false}), 1u);
    EXPECT_EQ(numbers.take({0, 4, 4 * 4096, false}), 6u);
    numbers.give_back(1);
    EXPECT_EQ(numbers.take({0, 4, 4 * 4096, false}), 11u);  // not 1 again
    EXPECT_EQ(numbers.take({0, 4, 4 * 4096, false}), 16u);
    EXPECT_EQ(numbers.take({0, 5, 5 * 4096, false}), 0u);  // 1 to 5, and 5 stays free
    EXPECT_EQ(numbers.take({0, 4, 4 * 4096, false}), 1u);
    EXPECT_EQ(numbers.take({0, 1, 1, false}), 0u);
}

TEST(PageNumbers, finds_allocations_by_their_first_page_and_by_any) {
    PageNumbers numbers{100, 200};
    const std::uint64_t first = numbers.take({0, 3, 9000, true});
    ASSERT_NE(numbers.find(first), nullptr);
    EXPECT_EQ(numbers.find(first)->bytes, 9000u);
    EXPECT_EQ(numbers.find(first + 1), nullptr);
    EXPECT_EQ(numbers.around(first + 2), numbers.find(first));
    EXPECT_EQ(numbers.around(first + 3), nullptr);
    EXPECT_EQ(numbers.around(first - 1), nullptr);
    EXPECT_EQ(numbers.take({0, 0, 0, false}), 0u);
    EXPECT_EQ(numbers.take({0, ~std::uint64_t{0}, 0, false}), 0u);
}

}  // namespace
}  // namespace hiroba::gas
