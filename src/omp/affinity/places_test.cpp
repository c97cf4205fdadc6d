// SPDX-License-Identifier: BSD-3-Clause
#include "omp/affinity/places.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace hiroba::omp {
namespace {

const Processors eight{0, 1, 2, 3, 4, 5, 6, 7};

std::vector<Processors> places(const char* text, const Processors& usable = eight) {
    std::vector<Processors> read;
    return read_places(text, usable, read) ? read : std::vector<Processors>{};
}

TEST(Places, are_read_as_the_standard_writes_them) {
    EXPECT_EQ(places("{0,1},{2,3}"), (std::vector<Processors>{{0, 1}, {2, 3}}));
    EXPECT_EQ(places("{0:2}:4:2"), (std::vector<Processors>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
    EXPECT_EQ(places("{0:4, !2}, 7"), (std::vector<Processors>{{0, 1, 3}, {7}}));
    EXPECT_EQ(places("{0}:8,!{3}"), (std::vector<Processors>{{0}, {1}, {2}, {4}, {5}, {6}, {7}}));
    EXPECT_EQ(places("{6:2}:3:-2"), (std::vector<Processors>{{6, 7}, {4, 5}, {2, 3}}));
    EXPECT_EQ(places(" threads (3) "), (std::vector<Processors>{{0}, {1}, {2}}));
}

TEST(Places, leave_out_what_cannot_be_used) {
    EXPECT_EQ(places("{0:4},{100}", {1, 3}), (std::vector<Processors>{{1, 3}}));
    EXPECT_TRUE(places("{4},{5}", {0, 1}).empty());
}

TEST(Places, that_are_none_are_refused) {
    for (const char* bad : {"", "{", "{}", "{0", "{0},", "{0:0}", "{-1}", "{0:2:-3}", "core",
                            "cores(0)", "cores(", "cores 3", "{0}:3:-1", "{0}x"})
        EXPECT_TRUE(places(bad).empty()) << bad;
}

TEST(Places, of_gccs_variable_are_single_processors) {
    std::vector<Processors> read;
    EXPECT_TRUE(read_cpu_affinity("0 3, 1-2 4-7:2", eight, read));
    EXPECT_EQ(read, (std::vector<Processors>{{0}, {3}, {1}, {2}, {4}, {6}}));
    for (const char* bad : {"", "a", "3-1", "0-", "9999", "0:x"})
        EXPECT_FALSE(read_cpu_affinity(bad, eight, read)) << bad;
}

TEST(Places, follow_what_the_kernel_tells) {
    const auto root = std::filesystem::temp_directory_path() /
                      ("places" + std::to_string(static_cast<long>(getpid())));
    const auto write = [&](const std::string& path, const char* text) {
        std::filesystem::create_directories((root / path).parent_path());
        std::ofstream(root / path) << text << '\n';
    };
    for (int cpu = 0; cpu < 8; ++cpu) {
        const std::string folder = "cpu/cpu" + std::to_string(cpu);
        const char* const cores[] = {"0,4", "1,5", "2,6", "3,7"};
        write(folder + "/topology/thread_siblings_list", cores[cpu % 4]);
        write(folder + "/topology/core_siblings_list", cpu % 4 < 2 ? "0-1,4-5" : "2-3,6-7");
        write(folder + "/cache/index0/shared_cpu_list", cores[cpu % 4]);
        write(folder + "/cache/index3/shared_cpu_list", "0-7");
    }
    write("node/node0/cpulist", "0-3");
    write("node/node1/cpulist", "4-7");
    const std::string at = root.string();
    using All = std::vector<Processors>;
    EXPECT_EQ(group_processors(PlaceKind::cores, eight, at.c_str()),
              (All{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
    EXPECT_EQ(group_processors(PlaceKind::cores, {1, 2, 5}, at.c_str()), (All{{1, 5}, {2}}));
    EXPECT_EQ(group_processors(PlaceKind::sockets, eight, at.c_str()),
              (All{{0, 1, 4, 5}, {2, 3, 6, 7}}));
    EXPECT_EQ(group_processors(PlaceKind::last_level_caches, eight, at.c_str()), (All{eight}));
    EXPECT_EQ(group_processors(PlaceKind::numa_domains, eight, at.c_str()),
              (All{{0, 1, 2, 3}, {4, 5, 6, 7}}));
    std::filesystem::remove_all(root);
    EXPECT_EQ(group_processors(PlaceKind::numa_domains, eight, at.c_str()), (All{eight}));
    EXPECT_EQ(group_processors(PlaceKind::cores, {2, 3}, at.c_str()), (All{{2}, {3}}));
}

std::vector<std::uint32_t> dealt(ProcBind policy, std::uint32_t threads, Binding leader) {
    std::vector<std::uint32_t> where;
    for (const Binding& each : deal_out(policy, threads, leader)) where.push_back(each.place);
    return where;
}

TEST(Places, are_dealt_out_by_the_policy) {
    using Where = std::vector<std::uint32_t>;
    EXPECT_EQ(dealt(ProcBind::primary, 3, {2, 0, 8}), (Where{2, 2, 2}));
    EXPECT_EQ(dealt(ProcBind::close, 4, {6, 0, 8}), (Where{6, 7, 0, 1}));
    EXPECT_EQ(dealt(ProcBind::any, 5, {1, 0, 2}), (Where{1, 1, 1, 0, 0}));
    EXPECT_EQ(dealt(ProcBind::spread, 3, {0, 0, 8}), (Where{0, 3, 6}));
    EXPECT_EQ(dealt(ProcBind::spread, 2, {5, 0, 8}), (Where{5, 0}));
    EXPECT_EQ(dealt(ProcBind::spread, 5, {0, 0, 2}), (Where{0, 0, 0, 1, 1}));
    const auto parts = deal_out(ProcBind::spread, 3, {0, 0, 8});
    EXPECT_EQ(parts[0].count + parts[1].count + parts[2].count, 8u);
    EXPECT_EQ(parts[2].first, 6u);
    EXPECT_EQ(parts[2].count, 2u);
}

TEST(Places, policies_are_one_word_or_one_for_each_level) {
    std::vector<ProcBind> levels;
    EXPECT_TRUE(read_proc_bind("TRUE", levels));
    EXPECT_EQ(levels, (std::vector{ProcBind::any}));
    EXPECT_TRUE(read_proc_bind("spread, close,master", levels));
    EXPECT_EQ(levels, (std::vector{ProcBind::spread, ProcBind::close, ProcBind::primary}));
    for (const char* bad : {"", "near", "true,close", "close,", "close spread", "false,false"})
        EXPECT_FALSE(read_proc_bind(bad, levels)) << bad;
}

}  // namespace
}  // namespace hiroba::omp
