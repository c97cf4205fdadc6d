// SPDX-License-Identifier: BSD-3-Clause
// Role: what is read from /proc and control groups, and the checks of room for a job.
#include "tools/machine.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tools/run/environment.hpp"
#include "tools/run/plan.hpp"

namespace hiroba::tools {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr SpaceSizes usual{16 * gib, gib / 16, 64};

/// A made-up / with the given files.
class Root {
public:
    explicit Root(const std::string& name) : path_(std::string(HIROBA_TEST_STAGE "/") + name) {
        std::filesystem::remove_all(path_);
    }
    void put(const std::string& file, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(path_ + file).parent_path());
        std::ofstream(path_ + file) << text;
    }
    Machine look() const { return look_at_machine(path_); }

private:
    std::string path_;
};

TEST(Machine, TheTightestControlGroupAboveCounts) {
    Root root("cgroup-two");
    root.put("/proc/self/cgroup", "0::/a/b\n");
    root.put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    root.put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
    root.put("/sys/fs/cgroup/a/memory.current", "73741824\n");
    root.put("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    root.put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    root.put("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    2048 kB\n");
    const Machine machine = root.look();
    EXPECT_EQ(machine.memory_cgroup, 1'000'000'000u);
    EXPECT_EQ(machine.memory_available, 2048u * 1024);
    ASSERT_TRUE(machine.cores_quota);
    EXPECT_DOUBLE_EQ(*machine.cores_quota, 1.5);
}

TEST(Machine, TheFirstGenerationOfControlGroupsIsRead) {
    Root root("cgroup-one");
    root.put("/proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/x\n0::/\n");
    root.put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2147483648\n");
    root.put("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "0\n");
    root.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    root.put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    root.put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    root.put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    const Machine machine = root.look();
    EXPECT_EQ(machine.memory_cgroup, 2 * gib);
    EXPECT_EQ(machine.cores(), 1u);
}

TEST(Machine, WhatCannotBeReadIsUnlimited) {
    const Machine machine = Root("nothing").look();
    EXPECT_EQ(machine.memory_cgroup, unlimited);
    EXPECT_EQ(machine.memory_available, unlimited);
    EXPECT_FALSE(machine.cores_quota);
    EXPECT_GE(machine.cores(), 1u);
}

TEST(Room, AMachineWithoutLimitsTakesSixtyFourNodes) {
    Machine machine;
    machine.stack_bytes = 8u << 20;
    EXPECT_TRUE(check_room({.nodes = 64, .threads_per_node = 4}, usual, machine));
}

TEST(Room, ManyNodesOfOneHostGetSmallerHeaps) {
    constexpr SpaceSizes sizes{16 * gib, 64u << 20, 64, 10u << 20};
    const auto heap_and_stack = [&](const RunPlan& plan, FreeSizes free = {}) {
        const SpaceSizes fitting = sizes_that_fit(plan, sizes, free);
        return std::pair{fitting.heap_bytes >> 20, fitting.stack_bytes >> 20};
    };
    using Mebibytes = std::pair<std::uint64_t, std::uint64_t>;
    EXPECT_EQ(heap_and_stack({.nodes = 32}), (Mebibytes{16 << 10, 64}));
    EXPECT_EQ(heap_and_stack({.nodes = 64}), (Mebibytes{8 << 10, 64}));
    EXPECT_EQ(heap_and_stack({.nodes = 128}), (Mebibytes{2 << 10, 32}));
    EXPECT_EQ(heap_and_stack({.nodes = 128}, {.heap = false}), (Mebibytes{16 << 10, 10}));
    EXPECT_EQ(heap_and_stack({.nodes = 64}, {.stack = false}), (Mebibytes{8 << 10, 64}));
    EXPECT_EQ(heap_and_stack({.nodes = 128}, {.heap = false, .stack = false}),
              (Mebibytes{16 << 10, 64}));
    EXPECT_EQ(heap_and_stack({.nodes = 1024}).second, 10u);
    EXPECT_GE(heap_and_stack({.nodes = 1024}).first, heap_bytes_least >> 20);
    // Nodes of other hosts are not mapped.
    EXPECT_EQ(heap_and_stack({.nodes = 128, .local_nodes = 8, .hosts = 16}),
              (Mebibytes{16 << 10, 64}));
}

TEST(Room, TooLittleMemoryNamesNeedAndOffer) {
    Machine machine;
    machine.memory_available = 255u << 20;
    const auto few = check_room({.nodes = 4}, usual, machine);
    ASSERT_FALSE(few);
    EXPECT_EQ(few.error().kind, ErrorKind::environment);
    EXPECT_NE(few.error().text.find("4 nodes need at least 256 MiB, available are 255 MiB"),
              std::string::npos)
        << few.error().text;
    machine.memory_available = unlimited;
    machine.memory_cgroup = 100u << 20;
    const auto group = check_room({.nodes = 2}, usual, machine);
    ASSERT_FALSE(group);
    EXPECT_NE(group.error().text.find("the control group leaves 100 MiB"), std::string::npos);
    EXPECT_TRUE(check_room({.nodes = 1}, usual, machine));
}

TEST(Room, AnUnlimitedStackLeavesLessAddressSpace) {
    Machine machine;
    machine.stack_bytes = 8u << 20;
    const SpaceSizes large{40 * 1024 * gib, gib / 16};
    EXPECT_TRUE(check_room({.nodes = 1}, large, machine));
    machine.stack_bytes = unlimited;
    const auto refused = check_room({.nodes = 1}, large, machine);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text.find("ulimit -s"), std::string::npos);
}

TEST(Room, SizesBeyondSixtyFourBitsSaturate) {
    const SpaceSizes huge{~std::uint64_t{0}, 1};
    EXPECT_EQ(space_bytes({.nodes = 64}, huge), unlimited);
}

TEST(Environment, EveryNodesIsLaidOutEqually) {
    const char* const inherited[] = {"A=1", "LD_PRELOAD=x.so", "HIROBA_JOB_RANK=7"};
    const RunPlan plan{.nodes = 64, .threads_per_node = 3, .library = "/lib/libhiroba.so"};
    const auto first = node_environment(inherited, plan, {1000, 5}, 0);
    for (std::uint32_t rank = 1; rank < 64; ++rank) {
        const auto other = node_environment(inherited, plan, {1000, 5}, rank);
        ASSERT_EQ(other.size(), first.size());
        for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(other[i].size(), first[i].size());
    }
    const auto has = [&](const char* text) {
        return std::find(first.begin(), first.end(), text) != first.end();
    };
    EXPECT_TRUE(has("LD_PRELOAD=/lib/libhiroba.so:x.so"));
    EXPECT_TRUE(has("HIROBA_JOB_SAVED_LD_PRELOAD=x.so"));
    EXPECT_TRUE(has("GLIBC_TUNABLES=glibc.pthread.rseq=0"));
    EXPECT_TRUE(has("HIROBA_JOB_RANK=0000"));
    EXPECT_FALSE(has("HIROBA_JOB_RANK=7"));
}

}  // namespace
}  // namespace hiroba::tools
