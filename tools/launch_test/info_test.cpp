// SPDX-License-Identifier: BSD-3-Clause
// Role: `hiroba info` in its forms.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "base/settings.hpp"
#include "tools/launch_test/command.hpp"

namespace hiroba::tools {
namespace {

Outcome info(std::vector<std::string> words, Command::Options options = {}) {
    words.insert(words.begin(), {stage("bin/hiroba"), "info"});
    return outcome_of(std::move(words), std::move(options));
}

TEST(Info, NamesBothFaultEnginesWithReasons) {
    const Outcome done = info({"--json"});
    ASSERT_EQ(done.status, 0) << done.err;
    const auto facts = nlohmann::json::parse(done.out);
    ASSERT_EQ(facts["fault_engine"]["engines"].size(), 2u);
    for (const auto& engine : facts["fault_engine"]["engines"])
        EXPECT_FALSE(engine["reason"].get<std::string>().empty());
    EXPECT_FALSE(facts["fault_engine"]["why"].get<std::string>().empty());
    EXPECT_EQ(facts["nodes_max"], 1024);
    EXPECT_GT(facts["limits"].size(), 5u);
    EXPECT_EQ(facts["providers"][0]["name"], "shm");
}

TEST(Info, ListsSettingsForTestsWhereTheyAreAskedForOrSet) {
    const auto names = [](const Outcome& done) {
        std::vector<std::string> found;
        const auto facts = nlohmann::json::parse(done.out);
        for (const auto& each : facts["settings"]) found.push_back(each["name"]);
        return found;
    };
    const auto has = [](const std::vector<std::string>& all, const char* name) {
        return std::ranges::find(all, name) != all.end();
    };
    const auto usual = names(info({"-c", "--json"}));
    EXPECT_LE(usual.size(), 20u);
    EXPECT_TRUE(has(usual, "HIROBA_PROVIDER"));
    EXPECT_FALSE(has(usual, "HIROBA_UDP_LOSS"));
    const auto set = names(info({"-c", "--json"}, {.variables = {"HIROBA_UDP_LOSS=1"}}));
    EXPECT_EQ(set.size(), usual.size() + 1);
    EXPECT_TRUE(has(set, "HIROBA_UDP_LOSS"));
    EXPECT_EQ(info({"--all"}).status, 64);
}

TEST(Info, ListsEverySettingWithValueAndOrigin) {
    const Outcome done = info({"-c", "--all", "--json"}, {.variables = {"HIROBA_NOTICES=12"}});
    ASSERT_EQ(done.status, 0) << done.err;
    const auto facts = nlohmann::json::parse(done.out);
    ASSERT_EQ(facts["settings"].size(), all_settings().size());
    for (const auto& each : facts["settings"]) {
        const bool changed = each["name"] == "HIROBA_NOTICES";
        EXPECT_EQ(each["origin"], changed ? "environment" : "default");
        EXPECT_EQ(each["value"], changed ? nlohmann::json("12") : each["default"]);
    }
}

TEST(Info, ALimitThatIsTooLowIsAVerdictAndAStatus) {
    const Outcome done = info({"-l"}, {.limits = {{RLIMIT_NOFILE, 40}}});
    EXPECT_EQ(done.status, 78);
    EXPECT_NE(done.out.find("too low  open files (ulimit -n): 40; 4 nodes need about 96: raise "
                            "ulimit -n\n"),
              std::string::npos)
        << done.out;
}

TEST(Info, TextNamesTheVersionTheKernelAndTheEngine) {
    const Outcome done = info({});
    ASSERT_EQ(done.status, 0) << done.err;
    for (const char* part : {"hiroba 0.", "\nkernel ", "\nfault engine ", "\nfeature ", "\nlimit "})
        EXPECT_NE(done.out.find(part), std::string::npos) << done.out;
}

/// Where a library is missing, or has no device, the line says so; where it is there, which and
/// what it found.
TEST(Info, SaysOfEachProviderWhatWasFoundOrIsMissing) {
    const Outcome done = info({"--json"});
    ASSERT_EQ(done.status, 0) << done.err;
    for (const auto& provider : nlohmann::json::parse(done.out)["providers"]) {
        const auto name = provider["name"].get<std::string>();
        const auto reason = provider["reason"].get<std::string>();
        const bool usable = provider["usable"].get<bool>();
        const auto says = [&](const char* text) { return reason.find(text) != reason.npos; };
        const bool is_absent = says("built without") || says("cannot be loaded");
        bool is_told = true;
        if (name.ends_with("ucx"))
            is_told = usable ? says("UCX 1.") && says("wires: ") && says("tcp (") : is_absent;
        if (name.ends_with("verbs"))
            is_told = says("libibverbs.so.1.") ? says(usable ? " port " : "no RDMA device")
                                               : is_absent && !usable;
        EXPECT_TRUE(is_told) << name << ": " << reason;
    }
}

}  // namespace
}  // namespace hiroba::tools
