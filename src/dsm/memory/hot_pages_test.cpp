// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/memory/hot_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace hiroba::dsm {
namespace {

using Pages = std::vector<std::uintptr_t>;

constexpr std::uintptr_t one = 0x1000, other = 0x9000;

struct World {
    std::unique_ptr<HotPages> pages = std::make_unique<HotPages>();
    std::size_t faults = 0;  ///< pages found by scans
    std::size_t vain = 0;    ///< hot pages that were reported and not written

    /// A collect before which `written` were written, with what they held before or not.
    Pages collect(const Pages& written, bool changed = true) {
        const auto span = pages->begin_collect();
        const Pages hot(span.begin(), span.end());
        EXPECT_TRUE(std::is_sorted(hot.begin(), hot.end()));
        EXPECT_EQ(std::set(hot.begin(), hot.end()).size(), hot.size());
        const auto contains = [](const Pages& all, std::uintptr_t page) {
            return std::find(all.begin(), all.end(), page) != all.end();
        };
        for (const std::uintptr_t page : written) {
            if (contains(hot, page)) continue;
            pages->found(page, page_bytes);
            ++faults;
        }
        pages->end_collect();
        for (const std::uintptr_t page : hot) {
            const bool was_written = contains(written, page);
            if (was_written && changed) continue;
            if (!was_written) ++vain;
            pages->unchanged(page);
        }
        return hot;
    }
};

TEST(HotPages, are_those_written_before_each_of_the_last_collects_in_ascending_order) {
    World world;
    for (std::uint32_t i = 0; i < HotPages::streak_wanted; ++i) {
        EXPECT_TRUE(world.collect({other, one}).empty());
    }
    EXPECT_EQ(world.collect({other, one}), (Pages{one, other}));
    constexpr std::uintptr_t between = 0x5000;
    for (std::uint32_t i = 0; i < HotPages::streak_wanted; ++i) {
        world.collect({other, between, one});
    }
    EXPECT_EQ(world.collect({other, between, one}), (Pages{one, between, other}));
}

TEST(HotPages, include_a_page_that_is_written_before_every_second_collect) {
    World world;
    for (std::size_t i = 0; i < HotPages::hot_collects_max - 1; ++i) {
        world.collect(i % HotPages::gap_max == 0 ? Pages{one} : Pages{});
    }
    EXPECT_EQ(world.faults, HotPages::streak_wanted);
}

TEST(HotPages, do_not_include_a_page_that_is_written_less) {
    World world;
    for (std::size_t i = 0; i < 100; ++i) {
        EXPECT_TRUE(world.collect(i % (HotPages::gap_max + 1) == 0 ? Pages{one} : Pages{}).empty());
    }
}

TEST(HotPages, end_when_they_are_written_no_more) {
    World world;
    for (std::size_t i = 0; i < 10; ++i) world.collect({one});
    for (std::size_t i = 0; i < 10; ++i) world.collect({});
    EXPECT_EQ(world.faults, HotPages::streak_wanted);
    EXPECT_EQ(world.vain, HotPages::vain_first);
    EXPECT_TRUE(world.collect({}).empty());
}

TEST(HotPages, end_in_time_and_are_back_at_once_if_still_written) {
    World world;
    for (std::size_t i = 0; i < 4 * HotPages::hot_collects_max; ++i) world.collect({one});
    EXPECT_LE(world.faults, 5 * HotPages::streak_wanted);
    EXPECT_GE(world.faults, 4 * HotPages::streak_wanted);
    // A page that was unmapped is never said to be unchanged.
    std::size_t reported = 0;
    for (std::size_t i = 0; i < 3 * HotPages::hot_collects_max; ++i) {
        reported += world.pages->begin_collect().size();
        world.pages->end_collect();
    }
    EXPECT_LT(reported, HotPages::hot_collects_max);
}

// The struct of a region's shared variables: each fault would cost more than many comparisons.
TEST(HotPages, that_are_written_with_what_they_held_are_doubted_ever_less) {
    World world;
    for (std::size_t i = 0; i < 8 * HotPages::hot_collects_max; ++i) world.collect({one}, false);
    EXPECT_LE(world.faults, 2 * (8 + 6) * HotPages::streak_wanted);
    for (std::size_t i = 0; i < 100; ++i) world.collect({});
    world.vain = 0;
    for (std::size_t i = 0; i < HotPages::streak_wanted + 1; ++i) world.collect({one});
    for (std::size_t i = 0; i < 10; ++i) world.collect({});
    EXPECT_EQ(world.vain, HotPages::vain_first);
}

// Rows of arrays, each written before ten collects, one behind the other.
TEST(HotPages, follow_a_loop_over_rows) {
    World world;
    constexpr std::size_t rows = 200, width = 30, sweeps = 10;
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < sweeps; ++i) {
            Pages written;
            for (std::size_t at = 0; at < width; ++at) {
                written.push_back((row + at * 8 * rows) * page_bytes);
            }
            world.collect(written);
        }
    }
    const std::size_t pages = rows * width;
    EXPECT_LT(world.faults, pages * (HotPages::streak_wanted + 1));
    EXPECT_LE(world.vain, pages * HotPages::vain_first);
}

TEST(HotPages, are_no_more_than_there_is_room_for) {
    World world;
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_LE(world.pages->begin_collect().size(), HotPages::hot_max);
        world.pages->found(one, 3 * HotPages::known_max * page_bytes);
        world.pages->end_collect();
    }
    EXPECT_EQ(world.pages->begin_collect().size(), HotPages::hot_max);
}

}  // namespace
}  // namespace hiroba::dsm
