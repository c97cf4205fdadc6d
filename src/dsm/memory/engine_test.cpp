// SPDX-License-Identifier: BSD-3-Clause
// Role: one suite for both fault engines, with real faults of the test process.
// Invariant: expectations hold for any engine; where engines may differ the facts decide.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "dsm/memory/engine_world.hpp"

namespace hiroba::dsm {
namespace {

class EachEngine : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        const bool uffd = std::string(GetParam()) == "uffd";
        const EngineProbe probe = uffd ? probe_uffd() : probe_mprotect();
        if (!probe.usable) GTEST_SKIP() << probe.reason;
    }
};
INSTANTIATE_TEST_SUITE_P(Engines, EachEngine, testing::Values("uffd", "mprotect"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EachEngine, a_read_miss_faults_once_and_sees_the_bytes_of_the_memory) {
    World world{GetParam(), 8};
    world.fill(3, 'x');

    EXPECT_EQ(world.byte(3, 100), 'x');
    EXPECT_EQ(world.byte(3, 101), 'x');

    EXPECT_EQ(world.read_faults, 1);
    EXPECT_EQ(world.write_faults, 0);
    EXPECT_EQ(world.collect().count(3), 0u);
}

TEST_P(EachEngine, a_write_miss_is_seen_in_the_memory_and_reported_once) {
    World world{GetParam(), 8};

    world.byte(5, 7) = 'w';

    EXPECT_EQ(world.faults(), 1);
    EXPECT_EQ(world.alias(5, 7), 'w');
    EXPECT_EQ(world.collect().count(5), 1u);
    EXPECT_TRUE(world.collect().empty());
}

TEST_P(EachEngine, each_first_write_after_a_collect_is_noticed) {
    World world{GetParam(), 8};
    world.read(2);
    world.read(3);
    world.collect();

    for (int round = 0; round < 5; ++round) {
        const int write_faults_before = world.write_faults;
        world.byte(2) = static_cast<char>(round);
        world.byte(2, 1) = static_cast<char>(round);
        EXPECT_EQ(world.write_faults - write_faults_before,
                  world.engine().facts().write_faults ? 1 : 0);
        EXPECT_EQ(world.collect(), Pages{2});
    }
}

/// Gives parts of the range properties of their own, which splits the kernel's mapping.
void split(World& world) {
    const auto advise = [&](std::size_t first, std::size_t count, int advice) {
        const AddressRange part = world.range_of(first, count);
        ASSERT_EQ(madvise(reinterpret_cast<void*>(part.address), part.bytes, advice), 0);
    };
    advise(5, 7, MADV_RANDOM);
    advise(12, 1, MADV_SEQUENTIAL);
    advise(40, 3, MADV_DONTFORK);
    const AddressRange locked = world.range_of(60, 4);
    const auto* const at = reinterpret_cast<void*>(locked.address);
    ASSERT_EQ(mlock2(at, locked.bytes, MLOCK_ONFAULT), 0);
}

TEST_P(EachEngine, a_split_mapping_is_mapped_collected_and_dropped_like_a_whole_one) {
    World world{GetParam(), 128};
    split(world);
    for (std::size_t page = 0; page < 128; page += 3) world.fill(page, 's');

    world.map(0, 128, Access::read);
    for (std::size_t page = 0; page < 128; ++page)
        EXPECT_EQ(world.byte(page), page % 3 == 0 ? 's' : 0) << page;
    world.collect();
    world.map(2, 120, Access::write);
    const Pages reported = world.collect();
    for (std::size_t page = 2; page < 122; ++page) EXPECT_EQ(reported.count(page), 1u) << page;
    world.byte(12) = 1;
    world.byte(62) = 1;
    EXPECT_EQ(world.collect(), (Pages{12, 62}));
    EXPECT_EQ(world.read_faults, 0);

    world.unmap(0, 128);
    world.read(61);
    EXPECT_EQ(world.read_faults, 1);
}

TEST_P(EachEngine, zeros_are_mapped_for_writing_over_a_split_mapping) {
    World world{GetParam(), 128};
    split(world);

    world.map(0, 128, Access::write);

    for (std::size_t page = 0; page < 128; ++page) world.byte(page) = 'w';
    EXPECT_EQ(world.faults(), 0);
    EXPECT_EQ(world.collect().size(), 128u);
}

TEST_P(EachEngine, map_for_writing_counts_as_written_also_on_mapped_pages) {
    World world{GetParam(), 64};
    world.map(8, 4, Access::read);
    world.collect();

    world.map(6, 8, Access::write);

    const Pages reported = world.collect();
    for (std::size_t page = 6; page < 14; ++page) EXPECT_EQ(reported.count(page), 1u) << page;
    world.byte(9) = 1;
    EXPECT_EQ(world.collect(), Pages{9});
}

TEST_P(EachEngine, mapping_a_batch_over_holes_and_mapped_pages_leaves_no_fault) {
    World world{GetParam(), 256};
    world.map(10, 1, Access::read);
    world.map(20, 5, Access::write);
    world.fill(100, 'b');

    world.map(0, 256, Access::read);

    int sum = 0;
    for (std::size_t page = 0; page < 256; ++page) sum += world.byte(page) != 0;
    EXPECT_EQ(sum, 1);
    world.byte(22) = 1;  // read access must not have been lowered from write
    EXPECT_EQ(world.faults(), 0);
}

TEST_P(EachEngine, a_batch_mapped_for_writing_has_what_the_memory_holds_and_zeros_elsewhere) {
    World world{GetParam(), 256};
    constexpr std::size_t held[] = {0, 7, 8, 100, 255};
    for (const std::size_t page : held) world.fill(page, static_cast<char>(page % 100 + 1));

    world.map(0, 256, Access::write);

    std::size_t wrong = 0;
    for (std::size_t page = 0; page < 256; ++page) {
        const bool holds = std::find(std::begin(held), std::end(held), page) != std::end(held);
        wrong += world.byte(page, 4095) != (holds ? static_cast<char>(page % 100 + 1) : 0);
        world.byte(page) = 'w';
        wrong += world.alias(page) != 'w';
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(world.faults(), 0);
    EXPECT_EQ(world.collect().size(), 256u);
}

TEST_P(EachEngine, pages_written_and_then_unmapped_are_reported_by_the_next_collect) {
    constexpr std::size_t tables = 4;  // whole page tables are what newer kernels free
    World world{GetParam(), tables * 512};
    world.map(0, world.pages(), Access::read);
    world.collect();
    for (std::size_t page = 0; page < world.pages(); ++page) world.byte(page) = 'u';

    world.unmap(0, world.pages());

    EXPECT_EQ(world.collect().size(), world.pages());
    EXPECT_EQ(world.alias(700), 'u');
    const int faults_before = world.faults();
    EXPECT_EQ(world.byte(700), 'u');
    EXPECT_EQ(world.faults(), faults_before + 1);
}

TEST_P(EachEngine, scattered_unmap_faults_where_it_unmapped_and_nowhere_else) {
    World world{GetParam(), 1024};
    world.map(0, 1024, Access::read);
    std::vector<AddressRange> ranges;
    for (std::size_t page = 0; page < 1024; page += 4) ranges.push_back(world.range_of(page));
    ranges.push_back(world.range_of(1021, 2));

    world.engine().unmap(ranges);

    for (std::size_t page = 0; page < 1024; ++page) {
        const int faults_before = world.faults();
        world.read(page);
        EXPECT_EQ(world.faults() - faults_before,
                  page % 4 == 0 || page == 1021 || page == 1022 ? 1 : 0)
            << page;
    }
}

TEST_P(EachEngine, more_scattered_written_pages_than_one_scan_returns_are_all_reported) {
    World world{GetParam(), 4096};
    world.map(0, 4096, Access::read);
    world.collect();
    Pages expected;
    for (std::size_t page = 1; page < 4096; page += 3) {
        world.byte(page) = 1;
        expected.insert(page);
    }

    EXPECT_EQ(world.collect(), expected);
}

TEST_P(EachEngine, random_traffic_is_reported_and_else_only_what_was_written_often) {
    World world{GetParam(), 2048};
    const unsigned seed = testing::UnitTest::GetInstance()->random_seed();
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    std::mt19937 random{seed};
    Pages mapped, written;
    std::size_t reports = 0;
    const auto pick = [&](std::size_t below) { return random() % below; };

    for (int step = 0; step < 20000; ++step) {
        const std::size_t page = pick(2048);
        const std::size_t count = std::min<std::size_t>(1 + pick(20), 2048 - page);
        switch (pick(20)) {
            case 0: {
                world.unmap(page, count);
                for (std::size_t p = page; p < page + count; ++p) mapped.erase(p);
                break;
            }
            case 1: {
                const bool write = pick(2) == 0;
                world.map(page, count, write ? Access::write : Access::read);
                for (std::size_t p = page; p < page + count; ++p) {
                    mapped.insert(p);
                    if (write) written.insert(p);
                }
                break;
            }
            case 2: {
                world.collect_and_compare(written, &mapped);
                ASSERT_FALSE(HasFailure());
                reports += written.size();
                written.clear();
                break;
            }
            default:
                if (pick(2) == 0) {
                    world.byte(page) = static_cast<char>(step);
                    written.insert(page);
                    ASSERT_EQ(world.alias(page), static_cast<char>(step));
                } else {
                    ASSERT_EQ(world.byte(page), world.alias(page));
                }
                mapped.insert(page);
        }
    }
    EXPECT_LT(static_cast<std::size_t>(world.vain), reports / 4);
}

TEST_P(EachEngine, no_write_escapes_an_unmap_that_races_with_it) {
    World world{GetParam(), 1};
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> made{0};
    std::thread writer{[&] {
        auto& word = reinterpret_cast<volatile std::uint64_t&>(world.byte(0));
        for (std::uint64_t n = 1; !stop; ++n) {
            word = n;
            made = n;
        }
    }};

    std::uint64_t known = 0;
    const auto in_memory = [&] {
        std::uint64_t value;
        std::array<char, sizeof value> bytes;
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = world.alias(0, i);
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    };
    for (int round = 0; round < 2000; ++round) {
        const std::scoped_lock guard{world.latch};  // the writer's fault waits
        world.unmap(0);
        const bool reported = world.collect().count(0) == 1;
        const std::uint64_t now = in_memory();
        ASSERT_TRUE(reported || now == known) << "round " << round;
        ASSERT_GE(now, made.load()) << "a write that was made is not in the memory";
        known = now;
        ASSERT_EQ(in_memory(), known) << "a write after unmap without a fault";
    }
    stop = true;
    writer.join();
}

// Pages that were unmapped for some collects come back beside one. What was read of each when it
// was reported or unmapped is what was written there, as soon as the thread that writes stands
// still.
TEST_P(EachEngine, no_write_is_lost_on_pages_that_come_back_beside_a_collect) {
    constexpr std::size_t pages = 64;
    World world{GetParam(), pages};
    std::array<std::mutex, pages> of_page;  // as a block's latch
    std::array<std::atomic<char>, pages> known{};
    std::atomic<int> bursts{0}, bursts_over{0};
    constexpr int bursts_max = 200;
    std::thread program{[&] {
        std::mt19937 random{815};
        for (int burst = 1; burst <= bursts_max; ++burst) {
            while (bursts < burst) std::this_thread::yield();
            for (std::size_t page = 0; page < pages; ++page) {
                const std::scoped_lock guard{of_page[page]};
                world.read(page);
                world.byte(page) = static_cast<char>(random() % 127 + 1);
            }
            bursts_over = burst;
        }
    }};
    const auto collect = [&] {
        for (const std::size_t page : world.collect()) {
            const std::scoped_lock guard{of_page[page]};
            known[page] = world.alias(page);
        }
    };
    for (int burst = 1; burst <= bursts_max; ++burst) {
        for (std::size_t page = 0; page < pages; ++page) world.unmap(page);
        collect();  // the pages are unmapped during all of the next one, at first
        bursts = burst;
        while (bursts_over < burst) collect();
        collect();
        for (std::size_t page = 0; page < pages; ++page)
            EXPECT_EQ(known[page], world.alias(page)) << page << " in burst " << burst;
    }
    program.join();
}

TEST_P(EachEngine, two_threads_may_fault_on_the_same_pages_at_once) {
    World world{GetParam(), 4096};
    std::atomic<int> ready{0};
    const auto touch = [&](char mark, std::size_t offset) {
        ++ready;
        while (ready < 2) std::this_thread::yield();
        for (std::size_t page = 0; page < 4096; ++page) {
            [[maybe_unused]] const char before = world.byte(page, offset);
            world.byte(page, offset) = mark;
        }
    };
    std::thread other{touch, 'b', 1};
    touch('a', 0);
    other.join();

    for (std::size_t page = 0; page < 4096; ++page) {
        ASSERT_EQ(world.alias(page, 0), 'a');
        ASSERT_EQ(world.alias(page, 1), 'b');
    }
    EXPECT_EQ(world.collect().size(), 4096u);
}

TEST_P(EachEngine, kept_pages_stay_writable_without_a_fault_and_their_writes_are_reported) {
    World world{GetParam(), 64};
    world.engine().keep(world.range_of(8, 2));
    world.map(8, 2, Access::read);
    world.collect();
    const int faults_before = world.faults();

    for (int round = 0; round < 3; ++round) {
        world.byte(8) = static_cast<char>(round);
        const Pages reported = world.collect();
        EXPECT_EQ(reported.count(8), 1u);
        EXPECT_EQ(reported.count(9), world.engine().facts().kept_always_reported ? 1u : 0u);
    }
    EXPECT_EQ(world.faults(), faults_before);

    world.engine().watch(world.range_of(8, 2));
    for (int round = 0; round < 4; ++round) world.collect_and_compare({});
    EXPECT_TRUE(world.collect().empty()) << "they are tracked as all others are";
    world.byte(9) = 'w';
    EXPECT_EQ(world.collect(), Pages{9});
}

TEST_P(EachEngine, no_page_of_a_sealed_range_is_written_before_the_seal_is_lifted) {
    World world{GetParam(), 64};
    for (std::size_t page = 0; page < 64; ++page) world.fill(page, 'a');
    const bool seals = world.engine().seal(world.range_of(16, 32));
    EXPECT_EQ(seals, std::string(GetParam()) == "uffd");
    if (!seals) return;
    world.map(0, 64, Access::read);
    world.collect();
    EXPECT_EQ(world.byte(20), 'a');
    EXPECT_EQ(world.faults(), 0) << "it is readable";

    world.sealed = world.range_of(16, 32);
    world.byte(15) = 'b';
    world.byte(48) = 'b';
    EXPECT_EQ(world.writes_refused, 0);
    world.byte(20) = 'b';
    EXPECT_EQ(world.writes_refused, 2) << "though it was mapped for writing at the first";
    world.byte(21) = 'b';
    EXPECT_EQ(world.writes_refused, 2);
    world.collect_and_compare({15, 20, 21, 48});
}

TEST_P(EachEngine, untracked_pages_are_written_without_a_fault_and_reported_when_tracked_again) {
    World world{GetParam(), 64};
    world.map(0, 64, Access::write);
    world.collect();
    world.engine().leave_untracked(world.range_of(16, 8));
    const int faults_before = world.faults();
    for (std::size_t page = 16; page < 24; ++page) world.byte(page) = 'u';
    EXPECT_EQ(world.faults(), faults_before);
    world.byte(30) = 't';
    EXPECT_EQ(world.collect(), Pages{30});
    world.byte(20) = 'v';
    EXPECT_EQ(world.faults(), faults_before + (world.engine().facts().write_faults ? 1 : 0));
    EXPECT_TRUE(world.collect().empty());

    world.engine().track(world.range_of(16, 8));
    world.collect_and_compare({16, 17, 18, 19, 20, 21, 22, 23});
    world.byte(17) = 'w';
    world.collect_and_compare({17});
}

TEST_P(EachEngine, writes_that_are_forgotten_are_not_asked_for_and_later_ones_are_reported) {
    World world{GetParam(), 1200};
    world.map(0, 1200, Access::write);
    world.collect();
    world.engine().leave_untracked(world.range_of(100, 1000));  // over several chunks
    for (std::size_t page = 100; page < 1100; ++page) world.byte(page) = 'u';

    world.engine().track(world.range_of(100, 1000));
    world.engine().forget_writes(world.range_of(100, 1000));
    for (const std::size_t page : {100, 600, 1099}) world.byte(page) = 'v';

    const Pages reported = world.collect();
    for (const std::size_t page : {100, 600, 1099}) EXPECT_EQ(reported.count(page), 1u) << page;
    // One that can't forget reports them all.
    const bool forgets = std::string(GetParam()) == "uffd";
    EXPECT_EQ(reported.size(), forgets ? 3u : 1000u);
    world.byte(700) = 'w';
    world.collect_and_compare({700});
}

TEST_P(EachEngine, a_page_written_all_the_time_is_reported_each_time_and_not_for_ever_after) {
    World world{GetParam(), 64};
    for (std::size_t page = 0; page < 64; ++page) world.read(page);
    world.collect();
    // Through the kernel's tricks with pages that are always written, unmaps among them.
    for (int round = 0; round < 200; ++round) {
        if (round % 50 == 20) world.unmap(7);
        world.byte(7) = static_cast<char>(round);
        if (round % 30 == 29) world.byte(8) = 1;
        const Pages reported = world.collect();
        ASSERT_EQ(reported.count(7), 1u) << round;
        ASSERT_EQ(reported.count(8), round % 30 == 29 ? 1u : 0u) << round;
        ASSERT_EQ(world.alias(7), static_cast<char>(round));
    }
    int more = 0;
    for (int round = 0; round < 200; ++round) more += static_cast<int>(world.collect().count(7));
    EXPECT_LT(more, 64);
    world.byte(7) = 5;
    EXPECT_EQ(world.collect().count(7), 1u);
    EXPECT_EQ(world.collect().count(7), 0u);
}

// Rows of an array, each written before some collects, beside pages that are written once: hot
// pages alone, in pairs and in crowds, and more written pages between them than hot ones.
TEST_P(EachEngine, no_write_is_lost_where_rows_are_written_again_and_again) {
    constexpr std::size_t pages = 6000;
    World world{GetParam(), pages};
    world.map(0, pages, Access::read);
    world.collect();
    std::mt19937 random{2026};
    std::size_t reports = 0;
    for (int round = 0; round < 600; ++round) {
        Pages written;
        const std::size_t row = static_cast<std::size_t>(round) / 10 * 3;
        for (std::size_t at = row; at < pages; at += round / 100 % 2 == 0 ? 40 : 700)
            written.insert(at);
        if (round % 4 == 0) written.insert(pages - 1);
        for (int i = round % 50 == 7 ? 500 : 3; i > 0; --i) written.insert(random() % pages);
        for (const std::size_t page : written) world.byte(page) = static_cast<char>(round);
        world.collect_and_compare(written);
        ASSERT_FALSE(HasFailure()) << "round " << round;
        reports += written.size();
        for (const std::size_t page : written)
            ASSERT_EQ(world.alias(page), static_cast<char>(round));
    }
    EXPECT_LT(static_cast<std::size_t>(world.vain), reports / 3);
    for (int round = 0; round < 10; ++round) world.collect_and_compare({});
    EXPECT_TRUE(world.collect().empty()) << "nothing is hot any more";
}

TEST_P(EachEngine, only_an_engine_without_written_pages_says_so) {
    World world{GetParam(), 8};
    world.read(1);
    world.collect();
    const bool knows = std::string(GetParam()) == "mprotect";
    EXPECT_EQ(world.engine().has_written(), !knows);

    world.byte(1) = 'w';
    EXPECT_TRUE(world.engine().has_written());
    world.unmap(1);
    world.byte(2) = 'w';
    EXPECT_TRUE(world.engine().has_written());
    EXPECT_EQ(world.collect().count(2), 1u);

    world.engine().keep(world.range_of(3));
    world.byte(3) = 'w';
    world.collect();
    EXPECT_TRUE(world.engine().has_written()) << "the next write to it is not noticed";
}

TEST_P(EachEngine, a_fault_preserves_errno) {
    World world{GetParam(), 2};
    errno = 4711;
    world.byte(1) = 1;
    EXPECT_EQ(errno, 4711);
}

TEST_P(EachEngine, regions_never_reach_over_the_end_of_an_attached_range) {
    auto memory = std::move(*PrivateMemory::create(8 * page_bytes));
    auto engine = std::move(*make_fault_engine(GetParam()));
    const AddressRange low{0x3000'0000'0000, 4 * page_bytes};
    const AddressRange high{low.end(), 4 * page_bytes};
    ASSERT_TRUE(engine->attach(high, memory.fd(), 4 * page_bytes, memory.at(4 * page_bytes)));
    ASSERT_TRUE(engine->attach(low, memory.fd(), 0, memory.at(0)));
    engine->map(low, Access::write);
    engine->map(high, Access::write);

    struct : WrittenSink {
        void written(AddressRange range) noexcept override { ranges.push_back(range); }
        std::vector<AddressRange> ranges;
    } sink;
    engine->collect(sink);

    ASSERT_EQ(sink.ranges.size(), 2u);
    EXPECT_EQ(sink.ranges[0].address, low.address);
    EXPECT_EQ(sink.ranges[0].end(), low.end());
    EXPECT_EQ(sink.ranges[1].address, high.address);
    EXPECT_FALSE(engine->attach(low, memory.fd(), 0, memory.at(0))) << "attached twice";
}

std::size_t page_table_kib() {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmPTE:")) return std::stoul(line.substr(6));
    ADD_FAILURE() << "no VmPTE";
    return 0;
}

TEST_P(EachEngine, collect_over_a_huge_sparse_range_makes_no_page_tables) {
    World world{GetParam(), (std::size_t{64} << 30) / page_bytes};
    const std::size_t stride = world.pages() / 100;
    const std::size_t before = page_table_kib();
    Pages expected;
    for (std::size_t i = 0; i < 100; ++i) {
        world.byte(i * stride) = 1;
        expected.insert(i * stride);
    }

    const Pages reported = world.collect();
    EXPECT_EQ(reported, expected);
    EXPECT_TRUE(world.collect().empty());
    // 100 tables each for the program's view, the alias and what lies above them.
    EXPECT_LT(page_table_kib() - before, 3000u);
}

TEST(uffd_engine, a_page_that_the_kernel_took_away_comes_back_as_written) {
    if (!probe_uffd().usable) GTEST_SKIP();
    World world{"uffd", 64};
    world.map(0, 64, Access::read);
    world.collect();
    world.byte(7) = 1;
    const AddressRange page = world.range_of(7);
    ASSERT_EQ(madvise(reinterpret_cast<void*>(page.address), page.bytes, MADV_DONTNEED), 0);

    EXPECT_EQ(world.byte(7), 1);  // a read fault, not known to the engine's user as an unmap

    EXPECT_EQ(world.read_faults, 1);
    EXPECT_EQ(world.collect(), Pages{7});
}

}  // namespace
}  // namespace hiroba::dsm
