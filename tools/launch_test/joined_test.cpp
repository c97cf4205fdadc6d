// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/joined.hpp"

#include <gtest/gtest.h>

#include "tools/run/plan.hpp"

namespace hiroba::tools {
namespace {

using Words = std::vector<std::string>;

TEST(JoinedPrograms, AreWhatColonsPart) {
    const auto programs = split_programs(
        {"first", "-n", "9", ":", "-n", "3", "second", ":", "--nodes", "1", "x", "y"});
    ASSERT_TRUE(programs);
    ASSERT_EQ(programs->size(), 3u);
    EXPECT_EQ((*programs)[0].words, (Words{"first", "-n", "9"}));
    EXPECT_EQ((*programs)[0].nodes, 0u);
    EXPECT_EQ((*programs)[1].words, Words{"second"});
    EXPECT_EQ((*programs)[1].nodes, 3u);
    EXPECT_EQ((*programs)[2].words, (Words{"x", "y"}));
    EXPECT_EQ((*programs)[2].nodes, 1u);
}

TEST(JoinedPrograms, AreRefusedWhereOneIsMissingOrHasNoNodes) {
    for (const Words& words :
         {Words{"first", ":"}, Words{":", "-n", "1", "second"}, Words{"first", ":", "second"},
          Words{"first", ":", "-n", "2"}, Words{"first", ":", ":", "-n", "2", "second"},
          Words{"first", ":", "-n", "0", "second"}, Words{"first", ":", "-n", "x", "second"},
          Words{"first", ":", "-n", "1025", "second"}}) {
        const auto programs = split_programs(words);
        ASSERT_FALSE(programs) << words.back();
        EXPECT_EQ(programs.error().kind, ErrorKind::usage);
    }
}

TEST(JoinedPrograms, AnyOtherProgramHasColonsAsArguments) {
    const auto nodes = nodes_of_joined({"/bin/echo", ":", "-n", "2", "/bin/echo"}, "2", false);
    ASSERT_TRUE(nodes);
    EXPECT_FALSE(*nodes);
    const auto spmd = nodes_of_joined({"/bin/echo", ":", "-n", "2", "/bin/echo"}, "2", true);
    ASSERT_TRUE(spmd);
    EXPECT_EQ(*spmd, 4u);
}

TEST(JoinedPrograms, RanksOfTheFirstComeFirst) {
    RunPlan plan;
    plan.joined = {{2, {"a"}, "/a"}, {1, {"b", "1"}, "/b"}, {3, {"c"}, "/c"}};
    std::string paths;
    for (std::uint32_t rank = 0; rank < 6; ++rank) paths += plan.program_of(rank);
    EXPECT_EQ(paths, "/a/a/b/c/c/c");
    EXPECT_EQ(plan.words_of(2), (Words{"b", "1"}));
}

}  // namespace
}  // namespace hiroba::tools
