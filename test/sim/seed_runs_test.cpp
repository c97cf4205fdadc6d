// SPDX-License-Identifier: BSD-3-Clause
#include "sim/seed_runs.hpp"

#include <gtest/gtest.h>

namespace hiroba::sim_test {
namespace {

/// What a command line with two further words is read as.
struct Read {
    explicit Read(std::vector<std::string> words) {
        words.insert(words.begin(), "/bin/sim_program");
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        testing::internal::CaptureStderr();
        fits = parse_seeds(static_cast<int>(arguments.size()), arguments.data(), range,
                           {number_word("steps=N", steps, 2), flag_word("tell", tell)});
        said = testing::internal::GetCapturedStderr();
    }
    SeedRange range;
    std::uint32_t steps = 40;
    bool tell = false, fits = false;
    std::string said;
};

TEST(SeedRuns, take_a_range_and_the_words_that_a_program_has) {
    const Read plain({"3", "90"});
    EXPECT_TRUE(plain.fits);
    EXPECT_EQ(plain.range.first, 3u);
    EXPECT_EQ(plain.range.last, 90u);
    EXPECT_EQ(plain.steps, 40u);
    const Read all({"3", "90", "steps=2", "first", "tell", "try=7"});
    EXPECT_TRUE(all.fits);
    EXPECT_TRUE(all.range.stop_at_first && all.tell);
    EXPECT_EQ(all.range.tried_first, 7u);
    EXPECT_EQ(all.steps, 2u);
    EXPECT_EQ(all.said, "");
}

TEST(SeedRuns, say_their_words_where_others_are_given) {
    using Words = std::vector<std::string>;
    for (const Words& words : {Words{},
                               {"1"},
                               {"0", "5"},
                               {"5", "4"},
                               {"1", "5", "step=3"},
                               {"1", "5", "steps=1"},
                               {"1", "5", "steps"},
                               {"1", "5", "steps="},
                               {"1", "5", "steps=3x"},
                               {"1", "5", "tell=1"},
                               {"1", "5", "try=0"}}) {
        const Read read(words);
        EXPECT_FALSE(read.fits) << testing::PrintToString(words);
        EXPECT_EQ(
            read.said,
            "usage: sim_program FIRST LAST [steps=N] [tell] [first] [try=SEED]; seeds from 1\n");
    }
}

TEST(SeedRuns, name_the_command_that_has_a_program_again) {
    EXPECT_EQ(replay_command("sim_program", 12), "sim_program 12 12");
}

}  // namespace
}  // namespace hiroba::sim_test
