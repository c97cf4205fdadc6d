// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/memory/hot_pages.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hiroba::dsm {
namespace {

constexpr std::uintptr_t one = 0x1000, other = 0x9000;

/// A collect whose scan finds `written`, but for what is hot; returns what was hot.
std::vector<std::uintptr_t> collect(HotPages& pages, const std::vector<std::uintptr_t>& written) {
    const auto hot = pages.begin_collect();
    std::vector<std::uintptr_t> skipped(hot.begin(), hot.end());
    for (const std::uintptr_t page : written) {
        if (std::find(skipped.begin(), skipped.end(), page) == skipped.end()) {
            pages.found(page, page_bytes);
        }
    }
    pages.end_collect();
    return skipped;
}

TEST(HotPages, are_those_written_before_each_of_the_last_collects_in_ascending_order) {
    HotPages pages;
    for (std::uint32_t i = 0; i < HotPages::streak_wanted; ++i) {
        EXPECT_TRUE(collect(pages, {other, one}).empty());
    }
    EXPECT_EQ(collect(pages, {other, one}), (std::vector<std::uintptr_t>{one, other}));
}

TEST(HotPages, do_not_include_a_page_that_missed_a_collect) {
    HotPages pages;
    for (std::uint32_t i = 0; i < 4 * HotPages::streak_wanted; ++i) {
        const bool pauses = i % HotPages::streak_wanted == HotPages::streak_wanted - 1;
        EXPECT_TRUE(
            collect(pages, pauses ? std::vector<std::uintptr_t>{} : std::vector{one}).empty());
    }
}

TEST(HotPages, are_given_up_in_time_and_are_back_at_once_if_still_written) {
    HotPages pages;
    std::vector<std::size_t> cold;
    for (std::size_t i = 1; i <= 4 * HotPages::hot_collects_max; ++i) {
        if (collect(pages, {one}).empty() && i > HotPages::streak_wanted) cold.push_back(i);
    }
    EXPECT_EQ(cold, (std::vector<std::size_t>{64, 65, 128, 129, 192, 193, 256}));
    std::size_t vain = 0;
    for (std::size_t i = 0; i < 3 * HotPages::hot_collects_max; ++i) {
        vain += collect(pages, {}).size();
    }
    EXPECT_LT(vain, HotPages::hot_collects_max);
}

TEST(HotPages, are_none_where_many_pages_are_written) {
    HotPages pages;
    for (std::size_t i = 0; i < 100; ++i) {
        EXPECT_TRUE(pages.begin_collect().empty());
        pages.found(one, (HotPages::few + 1) * page_bytes);
        pages.end_collect();
    }
}

}  // namespace
}  // namespace hiroba::dsm
