// SPDX-License-Identifier: BSD-3-Clause
// Role: loops of teams on several nodes, each node with its pools: which thread gets which
// iterations, and how often the team's words are asked for.
#include "omp/loop/chunk_pool.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/turns.hpp"
#include "omp/loop/loop_cursor.hpp"

namespace hiroba::omp {
namespace {

/// The time of the calling thread, while it lives.
class VirtualTime final : public Turns {
public:
    VirtualTime() { this_thread().turns = this; }
    VirtualTime(const VirtualTime&) = delete;
    VirtualTime& operator=(const VirtualTime&) = delete;
    ~VirtualTime() override { this_thread().turns = nullptr; }
    void pass() noexcept override { ++now; }
    std::uint64_t now_ns() noexcept override { return ++now; }
    std::uint64_t now = 1;
};

/// Counts what nodes would ask node 0 for.
class CountedWords final : public WordStore {
public:
    std::uint64_t load(std::size_t word) noexcept override {
        asked.fetch_add(1);
        return words_.load(word);
    }
    void store(std::size_t word, std::uint64_t value) noexcept override {
        asked.fetch_add(1);
        words_.store(word, value);
    }
    std::uint64_t fetch_add(std::size_t word, std::uint64_t value) noexcept override {
        asked.fetch_add(1);
        if (time != nullptr) time->now += exchange_ns;
        return words_.fetch_add(word, value);
    }
    std::uint64_t compare_swap(std::size_t word, std::uint64_t expected,
                               std::uint64_t desired) noexcept override {
        asked.fetch_add(1);
        return words_.compare_swap(word, expected, desired);
    }
    std::atomic<std::uint64_t> asked{0};
    VirtualTime* time = nullptr;  ///< which an exchange takes; none: the machine's

private:
    static constexpr std::uint64_t exchange_ns = 2000;
    LocalWords words_;
};

using Pools = std::array<ChunkPool, Workshare::slots>;

struct Nodes {
    Nodes(std::uint32_t count, std::uint32_t threads_each)
        : nodes(count), threads_each(threads_each) {
        for (std::uint32_t n = 0; n < count; ++n) pools.push_back(std::make_unique<Pools>());
    }
    std::uint32_t threads() const { return nodes * threads_each; }
    void begin(LoopCursor& cursor, const Loop& loop, std::uint32_t thread, std::uint64_t region,
               std::uint64_t sequence) {
        Pools& mine = *pools[thread / threads_each];
        const NodeShare node{
            &mine[sequence % Workshare::slots], {region, sequence}, threads_each, nodes};
        cursor.begin(loop, threads(), thread, words, sequence, nullptr, node);
    }
    std::uint32_t nodes, threads_each;
    CountedWords words;
    std::vector<std::unique_ptr<Pools>> pools;
};

Loop loop_of(std::uint64_t count, Schedule schedule, std::uint64_t chunk) {
    Loop loop;
    loop.end = count;
    loop.schedule = schedule;
    loop.chunk = chunk;
    return loop;
}

constexpr Schedule shared_schedules[] = {Schedule::dynamic, Schedule::guided};

/// Runs the loop until all threads have left it. `random` picks the thread that takes the next
/// chunk; `executed` is called behind each.
void run_to_end(
    std::vector<LoopCursor>& team, std::vector<int>& hits, std::mt19937& random,
    const std::function<void()>& executed = [] {}) {
    std::vector<std::uint32_t> busy(team.size());
    std::vector<std::uint64_t> last(team.size());
    for (std::uint32_t t = 0; t < team.size(); ++t) busy[t] = t;
    while (!busy.empty()) {
        const std::size_t pick = random() % busy.size();
        const std::uint32_t thread = busy[pick];
        std::uint64_t first = 0, end = 0;
        if (team[thread].next(&first, &end)) {
            ASSERT_LT(first, end);
            ASSERT_LE(last[thread], first) << "chunks of a thread descend";
            last[thread] = end;
            for (; first < end; ++first) ++hits[first];
            executed();
            continue;
        }
        team[thread].finish();
        busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(pick));
    }
}

TEST(ChunkPool, every_iteration_is_handed_out_once_on_any_number_of_nodes) {
    std::mt19937 random(11);
    for (const Schedule schedule : shared_schedules)
        for (std::uint32_t nodes = 2; nodes <= 5; ++nodes)
            for (std::uint32_t each = 1; each <= 3; ++each) {
                Nodes job{nodes, each};
                std::uint64_t sequence = 0;
                for (const std::uint64_t chunk : {1, 2, 7})
                    for (const std::uint64_t count : {0, 1, 5, 24, 300, 2000})
                        for (int again = 0; again < 12; ++again, ++sequence) {
                            std::vector<int> hits(count);
                            std::vector<LoopCursor> team(job.threads());
                            const Loop loop = loop_of(count, schedule, chunk);
                            for (std::uint32_t t = 0; t < team.size(); ++t)
                                job.begin(team[t], loop, t, 1, sequence);
                            ASSERT_NO_FATAL_FAILURE(run_to_end(team, hits, random));
                            ASSERT_EQ(hits, std::vector<int>(count, 1))
                                << static_cast<int>(schedule) << " chunk " << chunk;
                        }
                EXPECT_GT(sequence, 3 * Workshare::slots) << "slots were not used again";
            }
}

TEST(ChunkPool, a_cancelled_loop_leaves_nothing_to_the_next_in_its_slot) {
    std::mt19937 random(13);
    for (const Schedule schedule : shared_schedules) {
        Nodes job{3, 2};
        for (std::uint64_t region = 1; region < 40; ++region) {
            std::vector<LoopCursor> team(job.threads());
            for (std::uint32_t t = 0; t < team.size(); ++t)
                job.begin(team[t], loop_of(5000, schedule, 1), t, region, 0);
            std::uint64_t first = 0, end = 0;
            for (int taken = 0; taken < 60; ++taken)
                team[random() % team.size()].next(&first, &end);
            // The region ends; what it leaves in the words is cleared, and numbers begin anew.
            for (std::size_t word = 0; word < store_words; ++word) job.words.store(word, 0);
            std::vector<int> hits(900);
            std::vector<LoopCursor> other(job.threads());
            ++region;
            for (std::uint32_t t = 0; t < other.size(); ++t)
                job.begin(other[t], loop_of(900, schedule, 1), t, region, 0);
            ASSERT_NO_FATAL_FAILURE(run_to_end(other, hits, random));
            ASSERT_EQ(hits, std::vector<int>(900, 1));
            for (std::size_t word = 0; word < store_words; ++word) job.words.store(word, 0);
        }
    }
}

TEST(ChunkPool, threads_of_all_nodes_at_once_take_each_iteration_once) {
    constexpr std::uint64_t count = 3000;
    constexpr int loops = 200;
    for (const Schedule schedule : shared_schedules) {
        Nodes job{2, 2};
        std::vector<std::atomic<int>> hits(count);
        std::vector<std::thread> threads;
        for (std::uint32_t t = 0; t < job.threads(); ++t)
            threads.emplace_back([&, t] {
                LoopCursor cursor;
                for (std::uint64_t sequence = 0; sequence < loops; ++sequence) {  // nowait
                    job.begin(cursor, loop_of(count, schedule, 1), t, 1, sequence);
                    std::uint64_t first = 0, end = 0;
                    while (cursor.next(&first, &end))
                        for (; first < end; ++first) hits[first].fetch_add(1);
                    cursor.finish();
                }
            });
        for (std::thread& thread : threads) thread.join();
        for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(hits[i].load(), loops) << i;
    }
}

TEST(ChunkPool, a_loop_of_short_chunks_asks_much_less_often_than_it_has_chunks) {
    constexpr std::uint64_t count = 20'000, chunk_ns = 50;
    Nodes job{2, 2};
    VirtualTime time;
    job.words.time = &time;
    std::vector<LoopCursor> team(job.threads());
    for (std::uint32_t t = 0; t < team.size(); ++t)
        job.begin(team[t], loop_of(count, Schedule::dynamic, 1), t, 1, 0);
    std::mt19937 random(3);
    std::vector<int> hits(count);
    run_to_end(team, hits, random, [&] { time.now += chunk_ns; });
    // A load and a leave for each node, three stores for all; the rest are chunks. A node asks
    // again when its threads have executed what sixteen exchanges take.
    EXPECT_LT(job.words.asked.load(), count / 100);
}

TEST(ChunkPace, asks_for_as_much_as_sixteen_exchanges_take) {
    ChunkPace pace{2};
    EXPECT_EQ(pace.amount(1000, 1'000'000), 2u) << "one for each thread at first";
    pace.answered(1000, 2000);
    // Two chunks in 400 ns: as many as 16 exchanges of 1000 ns take are 80.
    EXPECT_EQ(pace.amount(2400, 1'000'000), 80u);
    pace.answered(2400, 102'400);
    EXPECT_EQ(pace.amount(102'400 + 80 * 200, 1'000'000), 80u * 64) << "of 8000, at once";
    pace.answered(200'000, 300'000);
    EXPECT_EQ(pace.amount(300'000 + 80 * 64 * 200, 1'000'000), 8000u);
    pace.answered(2'000'000, 9'000'000'000);
    EXPECT_EQ(pace.amount(9'000'000'000 + 8000 * 200, 1'000'000), 80'000u) << "of 1 ms at most";
    pace.answered(0, 1000);
    EXPECT_EQ(pace.amount(1000 + 80'000 * 200, 17), 17u) << "half of a share";
}

TEST(ChunkPace, takes_one_chunk_at_a_time_where_each_takes_long) {
    ChunkPace pace{4};
    EXPECT_EQ(pace.amount(0, 1000), 4u);
    pace.answered(100, 1100);
    EXPECT_EQ(pace.amount(4'001'100, 1000), 1u);
    pace.answered(4'001'100, 4'002'100);
    EXPECT_EQ(pace.amount(5'002'100, 1000), 1u);
}

TEST(GuidedChunks, follow_from_their_number_alone) {
    std::mt19937 random(5);
    for (const std::uint64_t count : {0ul, 1ul, 7ul, 1000ul, 123'456ul, ~0ul})
        for (const std::uint32_t threads : {1u, 2u, 7u, 1024u})
            for (const std::uint64_t chunk : {1ul, 3ul, 100ul, 1ul << 62}) {
                GuidedChunks all{count, threads, chunk}, some{count, threads, chunk};
                std::uint64_t first = 0, asked = 0;
                for (std::uint64_t number = 0; first < count; ++number) {
                    const IndexRange range = all.at(number);
                    ASSERT_EQ(range.first, first);
                    ASSERT_EQ(range.end, first + guided_share(count - first, threads, chunk));
                    first = range.end;
                    if (number != asked) continue;
                    ASSERT_EQ(some.at(number), range);
                    asked += 1 + random() % 9;
                }
                EXPECT_TRUE(all.at(~0ul >> 1).empty());
                EXPECT_TRUE(some.at(~0ul).empty());
            }
}

}  // namespace
}  // namespace hiroba::omp
