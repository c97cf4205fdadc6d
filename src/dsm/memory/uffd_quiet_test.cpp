// SPDX-License-Identifier: BSD-3-Clause
// Role: quiet chunks of the userfaultfd engine, with real faults: what is written is reported,
// however it is learned (docs/decisions/quiet-chunks.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "dsm/memory/engine_world.hpp"
#include "dsm/memory/uffd_engine.hpp"

namespace hiroba::dsm {
namespace {

/// Lets chunks of which little is written become quiet.
void calm_down(World& world) {
    for (int i = 0; i < 200; ++i) {
        world.collect();
        world.engine().adapt();
    }
}

class QuietChunks : public testing::Test {
protected:
    void SetUp() override {
        const EngineProbe probe = probe_uffd();
        if (!probe.usable) GTEST_SKIP() << probe.reason;
    }
    static bool is_quiet(World& world, std::size_t page) {
        return dynamic_cast<UffdEngine&>(world.engine()).is_quiet(world.range_of(page).address);
    }
};

TEST_F(QuietChunks,
       what_nobody_writes_is_quiet_and_a_first_write_is_a_fault_reported_until_watched) {
    World world{"uffd", 64};
    world.map(0, 64, Access::read);
    EXPECT_FALSE(is_quiet(world, 3));
    calm_down(world);
    ASSERT_TRUE(is_quiet(world, 3));
    EXPECT_FALSE(world.engine().has_written()) << "nothing to ask the kernel";

    world.byte(3) = 'a';
    EXPECT_EQ(world.write_faults, 1);
    EXPECT_TRUE(world.engine().has_written());
    EXPECT_EQ(world.collect(), Pages{3});
    world.byte(3) = 'b';
    EXPECT_EQ(world.write_faults, 1) << "it is left open";
    EXPECT_EQ(world.collect(), Pages{3});

    world.engine().watch(world.range_of(3));
    EXPECT_TRUE(world.collect().empty());
    EXPECT_FALSE(world.engine().has_written());
    world.byte(3) = 'c';
    EXPECT_EQ(world.write_faults, 2);
    EXPECT_EQ(world.collect(), Pages{3});
    EXPECT_EQ(world.alias(3), 'c');
}

TEST_F(QuietChunks, kept_pages_are_not_protected_until_watched) {
    World world{"uffd", 64};
    world.map(0, 64, Access::read);
    world.engine().keep(world.range_of(5));
    world.map(5, 1, Access::write);
    calm_down(world);
    ASSERT_TRUE(is_quiet(world, 5));
    world.byte(5) = 'k';
    EXPECT_EQ(world.write_faults, 0);
    EXPECT_EQ(world.collect(), Pages{5});
    world.engine().watch(world.range_of(5));
    EXPECT_TRUE(world.collect().empty());
    world.byte(5) = 'l';
    EXPECT_EQ(world.write_faults, 1);

    world.engine().keep(world.range_of(5));
    EXPECT_EQ(world.collect(), Pages{5});
    world.unmap(5);  // which ends it as well
    world.read(5);
    EXPECT_TRUE(world.collect().empty());
}

TEST_F(QuietChunks, where_much_is_written_the_kernel_is_asked_again) {
    World world{"uffd", 1024};
    world.map(0, 1024, Access::read);
    calm_down(world);
    ASSERT_TRUE(is_quiet(world, 0));
    Pages written;
    for (std::size_t page = 0; page < 300; ++page) {
        world.byte(page) = 'w';
        written.insert(page);
    }
    EXPECT_EQ(world.collect(), written);
    world.engine().adapt();
    EXPECT_FALSE(is_quiet(world, 0));
    const Pages first = world.collect();  // all that is mapped there counts as written once
    EXPECT_TRUE(std::includes(first.begin(), first.end(), written.begin(), written.end()));
    const int faults = world.faults();
    world.byte(7) = 'x';
    EXPECT_EQ(world.faults(), faults) << "the kernel notes it";
    EXPECT_EQ(world.collect(), Pages{7});
}

TEST_F(QuietChunks, untracked_pages_stay_so_however_the_chunk_is_tracked) {
    World world{"uffd", 64};
    world.map(0, 64, Access::write);
    world.collect();
    world.engine().leave_untracked(world.range_of(16, 8));
    calm_down(world);
    ASSERT_TRUE(is_quiet(world, 16));
    for (std::size_t page = 16; page < 24; ++page) world.byte(page) = 'u';
    EXPECT_EQ(world.faults(), 0);
    EXPECT_TRUE(world.collect().empty());
    world.engine().track(world.range_of(16, 8));
    EXPECT_EQ(world.collect(), (Pages{16, 17, 18, 19, 20, 21, 22, 23}));
    world.engine().leave_untracked(world.range_of(16, 8));
    EXPECT_TRUE(world.collect().empty());
}

// Few among tracked ones, a run that scans pass by, and one across chunks.
TEST_F(QuietChunks, what_is_written_among_untracked_pages_is_reported) {
    constexpr std::size_t pages = 1300;
    World world{"uffd", pages};
    world.map(0, pages, Access::write);
    world.collect();
    const PageRun runs[] = {{3, 1}, {5, 2}, {100, 200}, {400, 300}};
    for (const PageRun& run : runs)
        world.engine().leave_untracked(world.range_of(run.first, run.count));
    const auto is_untracked = [&](std::size_t page) {
        return std::any_of(std::begin(runs), std::end(runs), [&](const PageRun& run) {
            return page >= run.first && page < run.end();
        });
    };
    for (int round = 0; round < 20; ++round) {
        Pages written;
        for (std::size_t page = round % 3; page < pages; page += 1 + round % 4) {
            world.byte(page) = static_cast<char>(round);
            if (!is_untracked(page)) written.insert(page);
        }
        for (const Pages& each : {written, Pages{}}) {
            for (const std::size_t page : world.collect_and_compare(each))
                EXPECT_FALSE(is_untracked(page)) << page;
            ASSERT_FALSE(HasFailure()) << "round " << round;
        }
    }
    for (int round = 0; round < 10; ++round) world.collect_and_compare({});
    Pages all;
    for (const PageRun& run : runs) {
        world.engine().track(world.range_of(run.first, run.count));
        for (std::size_t page = run.first; page < run.end(); ++page) all.insert(page);
    }
    EXPECT_EQ(world.collect(), all) << "written while nobody asked";
    EXPECT_TRUE(world.collect().empty());
}

// Whatever happens to the chunks, a page written since the last collect is reported by the next.
TEST_F(QuietChunks, no_write_is_lost_while_chunks_come_and_go) {
    constexpr std::size_t pages = 1100;  // of three chunks
    std::mt19937 random{4711};
    const auto below = [&](std::size_t end) { return random() % end; };
    int changes = 0;
    World world{"uffd", pages};
    std::vector<char> bytes(pages, 0);
    Pages written;
    Pages untracked, written_untracked;
    bool quiet_before = false;
    for (int round = 0; round < 3000; ++round) {
        const bool busy = round / 300 % 2 == 1;
        for (std::size_t i = below(busy ? 200 : 4); i > 0; --i) {
            const std::size_t page = below(pages);
            if (untracked.count(page) == 0 && below(busy ? 2 : 64) == 0) {
                const std::size_t count = std::min(below(2) == 0 ? 1 : below(200), pages - page);
                for (std::size_t at = page; at < page + count; ++at) {
                    world.byte(at) = bytes[at];  // what is untracked is writable
                    if (!untracked.insert(at).second) continue;
                    world.engine().leave_untracked(world.range_of(at));
                    written.erase(at);
                }
            } else if (untracked.count(page) != 0 && below(busy ? 2 : 64) == 0) {
                for (std::size_t at = page; untracked.erase(at) != 0; ++at) {
                    world.engine().track(world.range_of(at));
                    if (written_untracked.erase(at) != 0) written.insert(at);
                }
            }
            const bool is_tracked = untracked.count(page) == 0;
            switch (below(4)) {
                case 0: ASSERT_EQ(world.byte(page), bytes[page]) << page; break;
                case 1:
                    if (!is_tracked) break;
                    world.unmap(page);
                    written.erase(page);  // the thread that unmaps reads it
                    break;
                default:
                    world.byte(page) = bytes[page] = static_cast<char>(round);
                    (is_tracked ? written : written_untracked).insert(page);
            }
        }
        const Pages reported = world.collect();
        ASSERT_TRUE(std::includes(reported.begin(), reported.end(), written.begin(), written.end()))
            << "round " << round;
        written.clear();
        world.engine().adapt();
        for (const std::size_t page : reported)
            if (below(3) == 0) world.engine().watch(world.range_of(page));
        const bool quiet = is_quiet(world, 600);
        changes += quiet != quiet_before ? 1 : 0;
        quiet_before = quiet;
    }
    EXPECT_GE(changes, 4) << "chunks have become quiet and loud";
}

}  // namespace
}  // namespace hiroba::dsm
