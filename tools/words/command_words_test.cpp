// SPDX-License-Identifier: BSD-3-Clause
// How words become options; what the commands say of wrong words: tools/launch_test.
#include "tools/words/command_words.hpp"

#include <gtest/gtest.h>

namespace hiroba::tools {
namespace {

struct Words {
    std::string number, name;
    bool loud = false;

    CommandWords command() {
        CommandWords words("go", "Goes");
        words.add_option("-n,--number", number, "how many");
        words.add_flag("-l,--loud", loud, "say it");
        words.add_required("name", name, "who");
        words.check_with([this] { return number == name ? "number and name are equal" : ""; });
        return words;
    }
};

TEST(CommandWords, OptionsFlagsAndPositionalWordsArrive) {
    Words words;
    const CommandWords command = words.command();
    const Parsed parsed = parse(command, {"go", "-l", "--number", "3", "me"}, "1");
    ASSERT_EQ(parsed.command, &command);
    EXPECT_EQ(words.number, "3");
    EXPECT_EQ(words.name, "me");
    EXPECT_TRUE(words.loud);
}

TEST(CommandWords, TheSubcommandThatWasNamedIsReturned) {
    Words words;
    const std::vector<CommandWords> commands = {CommandWords("stop", "Stops"), words.command()};
    const Parsed parsed = parse(CommandWords("all", "All"), commands, {"all", "go", "you"}, "1");
    ASSERT_EQ(parsed.command, &commands[1]);
    EXPECT_EQ(words.name, "you");
}

TEST(CommandWords, WrongWordsAreAUsageError) {
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{"go"},                     // no name
                                               {"go", "me", "you"},        // one too many
                                               {"go", "--quiet", "me"},    // unknown
                                               {"go", "me", "-n"},         // no value
                                               {"go", "me", "-n", "me"}})  // together
    {
        Words words;
        const Parsed parsed = parse(words.command(), wrong, "1");
        EXPECT_EQ(parsed.command, nullptr);
        EXPECT_EQ(parsed.status, 64);
    }
}

TEST(CommandWords, HelpIsNoError) {
    Words words;
    for (const char* const word : {"--help", "--version"}) {
        const Parsed parsed = parse(words.command(), {"go", word}, "1");
        EXPECT_EQ(parsed.command, nullptr);
        EXPECT_EQ(parsed.status, 0);
    }
}

TEST(CommandWords, KnowsWhichOptionsTakeTheNextWord) {
    Words words;
    const CommandWords command = words.command();
    EXPECT_TRUE(command.takes_value("-n"));
    EXPECT_TRUE(command.takes_value("--number"));
    EXPECT_FALSE(command.takes_value("--number=3"));
    EXPECT_FALSE(command.takes_value("-l"));
    EXPECT_FALSE(command.takes_value("name"));
    EXPECT_FALSE(command.takes_value("-"));
}

}  // namespace
}  // namespace hiroba::tools
