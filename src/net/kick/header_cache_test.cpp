// SPDX-License-Identifier: BSD-3-Clause
#include "net/kick/header_cache.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace hiroba::net::kick {
namespace {

constexpr std::uint64_t job_key = 7;
constexpr RegionId region{3};

/// Targets 0, 1, 2, ... of node 0.
struct Rig {
    explicit Rig(std::uint32_t pages) : table(job_key, 2), cache(new HeaderCache) {
        table.expose(region, std::uint64_t{pages} * page_bytes);
        for (std::uint32_t i = 0; i < pages; ++i)
            targets.push_back(*table.enter(NodeId{0}, region, std::uint64_t{i} * page_bytes));
    }
    void touch(std::uint32_t i) {
        const Header& header = cache->find(targets[i], [&] {
            return Header{.target = targets[i].number(),
                          .page_offset = table.find(targets[i])->page_offset()};
        });
        EXPECT_EQ(header.page_offset, std::uint64_t{i} * page_bytes);
    }
    SeedTable table;
    std::unique_ptr<HeaderCache> cache;
    std::vector<Target> targets;
};

TEST(HeaderCache, a_second_look_is_a_hit) {
    Rig rig{2};
    rig.touch(0);
    rig.touch(1);
    rig.touch(0);
    EXPECT_EQ(rig.cache->counts().misses, 2u);
    EXPECT_EQ(rig.cache->counts().hits, 1u);
    EXPECT_EQ(rig.cache->counts().evictions, 0u);
}

TEST(HeaderCache, holds_1024_targets_at_once) {
    Rig rig{HeaderCache::entries};
    for (int round = 0; round < 2; ++round)
        for (std::uint32_t i = 0; i < HeaderCache::entries; ++i) rig.touch(i);
    EXPECT_EQ(rig.cache->counts().misses, 1024u);
    EXPECT_EQ(rig.cache->counts().hits, 1024u);
}

TEST(HeaderCache, a_fifth_target_of_a_set_takes_the_place_of_the_one_not_used_for_longest) {
    constexpr std::uint32_t sets = HeaderCache::sets;
    Rig rig{4 * sets + 1};
    for (const std::uint32_t i : {0u, sets, 2 * sets, 3 * sets}) rig.touch(i);
    rig.touch(0);
    rig.touch(4 * sets);  // `sets` is the oldest now
    EXPECT_EQ(rig.cache->counts().evictions, 1u);
    const std::uint64_t misses = rig.cache->counts().misses;
    rig.touch(0);
    EXPECT_EQ(rig.cache->counts().misses, misses);
    rig.touch(sets);
    EXPECT_EQ(rig.cache->counts().misses, misses + 1);
}

TEST(SeedTable, refuses_what_is_not_a_page_of_an_exposed_region) {
    SeedTable table{job_key, 2};
    table.expose(region, page_bytes + 10);
    EXPECT_TRUE(table.enter(NodeId{1}, region, page_bytes));
    EXPECT_FALSE(table.enter(NodeId{2}, region, 0));
    EXPECT_FALSE(table.enter(NodeId{1}, RegionId{4}, 0));
    EXPECT_FALSE(table.enter(NodeId{1}, region, 8));
    const auto outside = table.enter(NodeId{1}, region, 2 * page_bytes);
    ASSERT_FALSE(outside);
    EXPECT_NE(outside.error().text.find("page at 8192 of region 3, which has 4106"),
              std::string::npos)
        << outside.error().text;
}

TEST(SeedTable, a_seed_carries_the_stamp_of_its_registration) {
    SeedTable table{job_key, 2};
    table.expose(region, page_bytes + 10);
    const Target target = *table.enter(NodeId{1}, region, page_bytes);
    const Seed* const seed = table.find(target);
    ASSERT_NE(seed, nullptr);
    EXPECT_EQ(seed->stamp().job_key, job_key);
    EXPECT_EQ(seed->stamp().rank, NodeId{1});
    EXPECT_EQ(seed->stamp().region, region);
    EXPECT_EQ(seed->bytes(), 10u);
    EXPECT_EQ(*table.enter(NodeId{1}, region, page_bytes), target);
    EXPECT_EQ(table.find(Target{}), nullptr);
}

}  // namespace
}  // namespace hiroba::net::kick
