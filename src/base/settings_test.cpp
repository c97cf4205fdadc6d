// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace hiroba {
namespace {

/// Sets one variable for the length of a test.
class Environment {
public:
    Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Environment() { unsetenv(name_); }

private:
    const char* name_;
};

std::uint64_t size_of(std::string_view text) {
    const Result<std::uint64_t> bytes = parse_size(text, "size");
    EXPECT_TRUE(bool(bytes)) << text;
    return bytes ? *bytes : 0;
}

TEST(ParseSize, ReadsPlainNumbersSuffixesAndFractions) {
    EXPECT_EQ(size_of("0"), 0u);
    EXPECT_EQ(size_of("64"), 64u);
    EXPECT_EQ(size_of("16K"), 16384u);
    EXPECT_EQ(size_of("3m"), 3u << 20);
    EXPECT_EQ(size_of("1.5G"), 3ull << 29);
    EXPECT_EQ(size_of("0.25T"), 1ull << 38);
    EXPECT_EQ(size_of("0.3K"), 307u);
    EXPECT_EQ(size_of("0.0000000000001T"), 0u);
    EXPECT_EQ(size_of("16777215T"), 16777215ull << 40);
    EXPECT_EQ(size_of("16777215.999999999999T"), (16777215ull << 40) + 1099511626676u);
}

TEST(ParseSize, RefusesEverythingElseNamingWhatAndValue) {
    for (const char* text : {"", " 1", "1 ", "-1", "+1", "K", "1.5", "1.", ".5G", "1.5.5G", "1KB",
                             "1E3", "0x10", "16777216T", "99999999999999999999", "1G2"}) {
        const Result<std::uint64_t> bytes = parse_size(text, "HIROBA_HEAP");
        ASSERT_FALSE(bool(bytes)) << text;
        EXPECT_EQ(bytes.error().kind, ErrorKind::usage);
        EXPECT_TRUE(bytes.error().text.starts_with("HIROBA_HEAP=" + std::string(text) + ":"))
            << bytes.error().text;
    }
}

TEST(Settings, NumbersOutOfTheirRangeAreRefusedWithBoth) {
    for (const auto& [name, value] :
         {std::pair{"HIROBA_NOTICES", "0"}, std::pair{"HIROBA_NOTICES", "1501"},
          std::pair{"HIROBA_VERBS_QUEUES", "17"}, std::pair{"HIROBA_UDP_LOSS", "101"},
          std::pair{"HIROBA_GAS_PAGE", "4M"}, std::pair{"HIROBA_ACP_STARTER", "1"}}) {
        const Environment set{name, value};
        const Result<void> checked = check_settings();
        ASSERT_FALSE(bool(checked)) << name;
        EXPECT_EQ(checked.error().kind, ErrorKind::usage);
        const std::string wanted = std::string(name) + "=" + value + ": must be a ";
        EXPECT_TRUE(checked.error().text.starts_with(wanted)) << checked.error().text;
        EXPECT_NE(checked.error().text.find(" from "), std::string::npos);
    }
    for (const auto& [name, value] :
         {std::pair{"HIROBA_NOTICES", "1"}, std::pair{"HIROBA_NOTICES", "1500"},
          std::pair{"HIROBA_UDP_LOSS", "0"}, std::pair{"HIROBA_ACP_STARTER", "32G"}}) {
        const Environment set{name, value};
        EXPECT_TRUE(bool(check_settings())) << name;
    }
}

TEST(Settings, TableIsAlphabeticalDescribedAndAcceptsItsDefaults) {
    const auto names = all_settings();
    EXPECT_TRUE(std::ranges::is_sorted(names, {},
                                       [](const Setting& s) { return std::string_view(s.name); }));
    for (const Setting& known : names) {
        EXPECT_TRUE(std::string_view(known.name).starts_with("HIROBA_"));
        EXPECT_GT(std::string_view(known.help).size(), 10u) << known.name;
    }
    EXPECT_TRUE(bool(check_settings()));
    EXPECT_LE(std::ranges::count_if(names, &Setting::is_usual), 20);
}

TEST(Settings, EnvironmentOverridesTheDefaultUnlessEmpty) {
    EXPECT_EQ(setting("HIROBA_HEAP"), "16G");
    EXPECT_EQ(*setting_number("HIROBA_HEAP"), 16ull << 30);
    {
        const Environment set{"HIROBA_HEAP", "2.5G"};
        EXPECT_EQ(*setting_number("HIROBA_HEAP"), 5ull << 29);
    }
    const Environment empty{"HIROBA_HEAP", ""};
    EXPECT_EQ(setting("HIROBA_HEAP"), "16G");
}

TEST(Settings, CheckNamesTheFirstValueThatIsNotAllowed) {
    for (const auto& [name, value] :
         {std::pair{"HIROBA_FAULT_ENGINE", "uff"}, std::pair{"HIROBA_RACE", "off|report"},
          std::pair{"HIROBA_HEAP", "0"}, std::pair{"HIROBA_NOTICES", "ten"}}) {
        const Environment bad{name, value};
        const Result<void> checked = check_settings();
        ASSERT_FALSE(bool(checked)) << name;
        EXPECT_EQ(checked.error().kind, ErrorKind::usage);
        EXPECT_TRUE(checked.error().text.starts_with(std::string(name) + "=" + value + ":"))
            << checked.error().text;
    }
    const Environment good{"HIROBA_RACE", "abort"};
    EXPECT_TRUE(bool(check_settings()));
}

TEST(Settings, UnknownNamesAreListedButNotKnownOrInternalOnes) {
    EXPECT_EQ(unknown_settings(), "");
    const Environment known{"HIROBA_HEAP", "1G"};
    const Environment internal{"HIROBA_JOB_RANK", "0"};
    const Environment wrong{"HIROBA_HAEP", "1G"};
    EXPECT_EQ(unknown_settings(), "HIROBA_HAEP");
    const Environment also{"HIROBA_HEAPS", "1G"};
    EXPECT_EQ(unknown_settings().size(), std::string_view("HIROBA_HAEP HIROBA_HEAPS").size());
}

TEST(SettingsDeathTest, AskingForAVariableThatIsNotInTheTableIsABug) {
    EXPECT_EXIT(setting("HIROBA_HAEP"), testing::KilledBySignal(SIGABRT), "HIROBA_HAEP");
}

}  // namespace
}  // namespace hiroba
