// SPDX-License-Identifier: BSD-3-Clause
// Role: what of a recording is replayed, and what becomes of it on other machines.
#include <gtest/gtest.h>

#include "tools/predict/machine_model.hpp"
#include "tools/predict/work.hpp"

namespace hiroba::tools {
namespace {

constexpr std::int64_t us = 1000;

/// A run of nodes of one thread, made by hand.
class MadeRun {
public:
    explicit MadeRun(std::uint32_t nodes, std::uint32_t cores = 8) {
        recording_.job.nodes = nodes;
        recording_.job.threads = 1;
        recording_.names = "code 1 1 a.c:1\n";
        recording_.places.emplace_back();
        for (std::uint32_t node = 0; node < nodes; ++node) {
            recording_.nodes.push_back({true, "here", 1, cores, 0});
            recording_.streams.push_back({node, static_cast<std::int32_t>(node), {}});
        }
    }
    void add(std::uint32_t node, std::int64_t begin_us, std::int64_t end_us, RecordKind kind,
             std::uint64_t first = 0, std::uint64_t second = 0, std::uint64_t extra = 0) {
        recording_.streams[node].events.push_back(
            {begin_us * us, end_us * us, first, second, extra, 0, kind});
        recording_.end_ns = std::max(recording_.end_ns, end_us * us);
    }
    void at(std::uint32_t node, std::int64_t at_us, RecordKind kind, std::uint64_t first = 0,
            std::uint64_t second = 0, std::uint64_t extra = 0) {
        add(node, at_us, at_us, kind, first, second, extra);
    }
    Recording& recording() { return recording_; }
    Result<WorkTable> work(bool without_false_sharing = false) {
        analysis_ = analyse(recording_);
        return work_of(analysis_, {without_false_sharing});
    }

private:
    Recording recording_;
    Analysis analysis_;
};

std::uint64_t by(FaultWay way) { return static_cast<std::uint64_t>(way) << 56; }

/// 100 us alone; then node 0 computes 300 us and waits, node 1 computes 400 us, brings a block of
/// node 0 for 50 us and publishes one; 20 us alone.
MadeRun two_nodes() {
    MadeRun run(2);
    run.add(0, 100, 102, RecordKind::fork, 1);
    run.at(0, 102, RecordKind::region, 1, 2ull << 32, 1000 * us);
    run.at(0, 402, RecordKind::ends, 1, 0, 1300 * us);
    run.add(0, 402, 560, RecordKind::join, 1);
    run.at(0, 580, RecordKind::program);
    run.add(1, 0, 103, RecordKind::idle);
    run.at(1, 103, RecordKind::region, 1, 1 | 2ull << 32, 0);
    run.at(1, 190, RecordKind::fetched, 0x10000, 0ull | 4096ull << 32);
    run.add(1, 150, 200, RecordKind::fault, 0x10008 | by(FaultWay::by_home));
    run.at(1, 553, RecordKind::ends, 1, 0, 450 * us);
    run.add(1, 553, 580, RecordKind::idle, 1);
    return run;
}

TEST(Work, is_what_threads_did_without_waiting) {
    MadeRun run = two_nodes();
    const auto work = run.work();
    ASSERT_TRUE(work) << work.error().text;
    ASSERT_EQ(work->stretches.size(), 3u);
    const Stretch& alone = work->stretches[0];
    EXPECT_TRUE(alone.serial());
    EXPECT_NEAR(alone.threads[0].computing_ns, 100 * us, 1);
    const Stretch& region = work->stretches[1];
    EXPECT_EQ(region.end, Meeting::join);
    EXPECT_NEAR(region.threads[0].computing_ns, 300 * us, 1);
    EXPECT_NEAR(region.threads[1].computing_ns, 400 * us, 1);
    EXPECT_NEAR(region.threads[1].memory_ns, 50 * us, 1);
    EXPECT_EQ(region.threads[1].of_node.at(0), (Asked{2, 4096}));
    EXPECT_TRUE(region.threads[0].of_node.empty());
    EXPECT_NEAR(work->stretches[2].threads[0].computing_ns, 20 * us, 1);
    EXPECT_NEAR(on_one_host_ns(*work, 2), (100 + 400 + 20) * us, 1);
    EXPECT_NEAR(on_one_host_ns(*work, 1), (100 + 700 + 20) * us, 1);
}

TEST(Work, is_processor_time_where_cores_are_short) {
    MadeRun run = two_nodes();
    for (RecordedNode& node : run.recording().nodes) node.cores = 1;
    run.recording().streams[0].events[2].extra = 1100 * us;  // the core was its own for 100 us
    const auto work = run.work();
    ASSERT_TRUE(work);
    EXPECT_NEAR(work->stretches[1].threads[0].computing_ns, 100 * us, 1);
    EXPECT_FALSE(work->notes.empty());
}

TEST(Work, of_a_barrier_ends_with_it) {
    MadeRun run(2);
    for (std::uint32_t node = 0; node < 2; ++node) {
        run.at(node, 0, RecordKind::region, 1, node | 2ull << 32, 0);
        run.at(node, 100 + node * 50, RecordKind::barrier_at, 1, std::uint64_t{node} << 32,
               (100 + node * 50) * us);
        run.add(node, 100 + node * 50, 160, RecordKind::barrier, 1, std::uint64_t{node} << 32);
        run.at(node, 260, RecordKind::ends, 1, 0, (260 - 50 + node * 50) * us);
        run.add(node, 260, 270, node == 0 ? RecordKind::join : RecordKind::idle, 1);
    }
    const auto work = run.work();
    ASSERT_TRUE(work);
    ASSERT_GE(work->stretches.size(), 2u);
    EXPECT_EQ(work->stretches[0].end, Meeting::barrier);
    EXPECT_NEAR(work->stretches[0].threads[0].computing_ns, 100 * us, 1);
    EXPECT_NEAR(work->stretches[0].threads[1].computing_ns, 150 * us, 1);
    EXPECT_NEAR(work->stretches[1].threads[1].computing_ns, 100 * us, 1);
    EXPECT_NEAR(work->meeting_ns[static_cast<unsigned>(Meeting::barrier)], 10 * us, 1);
}

TEST(Work, of_falsely_shared_blocks_can_be_left_out) {
    MadeRun run = two_nodes();
    auto& reader = run.recording().streams[1].events;
    const auto changed = [](std::int64_t at, std::uint32_t first) {
        const ChangeShape shape{first, first + 7, 1, 8};
        return Event{at * us,        at * us, 0x10000,           1ull << first / 64,
                     shape.packed(), 0,       RecordKind::merged};
    };
    reader.insert(reader.begin() + 4, changed(300, 512));
    auto& writer = run.recording().streams[0].events;
    writer.insert(writer.begin() + 2, changed(300, 0));
    const auto with = run.work();
    const auto without = run.work(true);
    ASSERT_TRUE(with && without);
    EXPECT_EQ(with->stretches[1].threads[1].of_node.at(0).bytes, 4096);
    EXPECT_FALSE(without->stretches[1].threads[1].of_node.contains(0) &&
                 without->stretches[1].threads[1].of_node.at(0).exchanges > 0);
    EXPECT_LT(without->stretches[1].threads[1].memory_ns, with->stretches[1].threads[1].memory_ns);
}

TEST(Work, of_one_node_is_refused) {
    MadeRun run(1);
    const auto work = run.work();
    ASSERT_FALSE(work);
    EXPECT_NE(work.error().text.find("hiroba run -n 2"), std::string::npos);
}

double computing_in(const Stretch& stretch) {
    double sum = 0;
    for (const ThreadWork& work : stretch.threads) sum += work.computing_ns;
    return sum;
}
double bytes_in(const Stretch& stretch) {
    double sum = 0;
    for (const ThreadWork& work : stretch.threads)
        for (const auto& [node, asked] : work.of_node) sum += asked.bytes;
    return sum;
}

TEST(Spread, keeps_the_work_and_lets_bytes_grow_as_asked) {
    const auto work = two_nodes().work();
    ASSERT_TRUE(work);
    for (const std::uint32_t nodes : {2u, 3u, 8u, 64u}) {
        const WorkTable divided = spread_over(*work, nodes, 1, Growth::divided);
        const WorkTable each = spread_over(*work, nodes, 1, Growth::each);
        EXPECT_NEAR(computing_in(divided.stretches[1]), 700 * us, 1) << nodes;
        EXPECT_NEAR(bytes_in(divided.stretches[1]), 4096 * 2 * (1 - 1. / nodes), 1) << nodes;
        EXPECT_NEAR(bytes_in(each.stretches[1]), 4096 * nodes / 2., 1) << nodes;
        EXPECT_NEAR(divided.stretches[0].threads[0].computing_ns, 100 * us, 1) << nodes;
        for (std::uint32_t node = 0; node < nodes; ++node)
            EXPECT_FALSE(each.stretches[1].threads[node].of_node.contains(node)) << nodes;
    }
    EXPECT_EQ(bytes_in(spread_over(*work, 1, 4, Growth::each).stretches[1]), 0);
}

TEST(Spread, to_what_it_was_recorded_on_changes_nothing) {
    const auto work = two_nodes().work();
    ASSERT_TRUE(work);
    const WorkTable same = spread_over(*work, 2, 1, Growth::divided);
    for (std::size_t at = 0; at < same.stretches.size(); ++at)
        for (std::size_t thread = 0; thread < 2; ++thread) {
            const ThreadWork& was = work->stretches[at].threads[thread];
            const ThreadWork& is = same.stretches[at].threads[thread];
            EXPECT_NEAR(is.computing_ns, was.computing_ns, 1);
            EXPECT_EQ(is.of_node, was.of_node);
        }
}

TEST(Machine, is_read_as_it_was_written) {
    const auto known = wire_of("25GbE");
    ASSERT_TRUE(known);
    EXPECT_GT(known->gigabytes_s, 2);
    const auto own = wire_of("7.5us,2GB/s,0us");
    ASSERT_TRUE(own);
    EXPECT_EQ(own->latency_us, 7.5);
    EXPECT_EQ(own->gigabytes_s, 2);
    for (const char* wrong : {"", "3GbE", "7us,2GB/s", "7us,0GB/s,1us", "7,2,1", "-7us,2GB/s,1us",
                              "nanus,2GB/s,1us", "7us,2GB/s,1us,1us"})
        EXPECT_FALSE(wire_of(wrong)) << wrong;
    EXPECT_EQ(*node_counts("2,4,16"), (std::vector<std::uint32_t>{2, 4, 16}));
    for (const char* wrong : {"", "0", "2,", "2;4", "257", "-1", "2x"})
        EXPECT_FALSE(node_counts(wrong)) << wrong;
}

TEST(Machine, is_changed_as_asked) {
    const auto changes = changes_of("latency/2,bandwidth*4,threads=8,no-false-sharing");
    ASSERT_TRUE(changes);
    Wire wire{"w", 10, 1, 3};
    change(wire, *changes);
    EXPECT_EQ(wire.latency_us, 5);
    EXPECT_EQ(wire.gigabytes_s, 4);
    EXPECT_EQ(wire.message_us, 3);
    EXPECT_EQ(changes->threads, 8u);
    EXPECT_TRUE(changes->without_false_sharing);
    for (const char* wrong : {"lat/2", "latency", "latency/0", "latency/x", "latency=2",
                              "threads*2", "threads=0", "latency/2,"})
        EXPECT_FALSE(changes_of(wrong)) << wrong;
    auto work = two_nodes().work();
    ASSERT_TRUE(work);
    change(*work, *changes_of("misses/4,computing*2"));
    EXPECT_EQ(work->stretches[1].threads[1].of_node.at(0), (Asked{.5, 1024}));
    EXPECT_NEAR(work->stretches[1].threads[0].computing_ns, 600 * us, 1);
}

}  // namespace
}  // namespace hiroba::tools
