// SPDX-License-Identifier: BSD-3-Clause
// What is written is read by another library, value for value.
#include "tools/json.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace hiroba::tools {
namespace {

TEST(Json, AnotherReaderSeesTheSameValues) {
    const Json value = Json::object(
        {{"text", "a \"b\" \\ \n\t\x01\x7f \xC3\xA9 \xF0\x9F\x99\x82"},
         {"least", std::numeric_limits<std::int64_t>::min()},
         {"most", std::numeric_limits<std::uint64_t>::max()},
         {"half", 0.5},
         {"whole", 3.0},
         {"small", 1e-300},
         {"yes", true},
         {"none", nullptr},
         {"empty", Json::object()},
         {"list", Json::array({1, "two", Json::array(), Json::object({{"three", 3}})})}});
    for (const unsigned indent : {0u, 2u}) {
        const auto read = nlohmann::ordered_json::parse(value.dump(indent));
        EXPECT_EQ(read["text"], "a \"b\" \\ \n\t\x01\x7f \xC3\xA9 \xF0\x9F\x99\x82");
        EXPECT_EQ(read["least"], std::numeric_limits<std::int64_t>::min());
        EXPECT_EQ(read["most"], std::numeric_limits<std::uint64_t>::max());
        EXPECT_EQ(read["half"], 0.5);
        EXPECT_TRUE(read["whole"].is_number_float());
        EXPECT_EQ(read["small"], 1e-300);
        EXPECT_EQ(read["yes"], true);
        EXPECT_TRUE(read["none"].is_null());
        EXPECT_TRUE(read["empty"].is_object());
        EXPECT_EQ(read["list"].dump(), R"([1,"two",[],{"three":3}])");
        EXPECT_EQ(read.begin().key(), "text") << "members keep their order";
    }
}

TEST(Json, IndentsAsReadersExpect) {
    const Json value = Json::object({{"a", Json::array({1, 2})}, {"b", Json::array()}});
    EXPECT_EQ(value.dump(), R"({"a":[1,2],"b":[]})");
    EXPECT_EQ(value.dump(2), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}");
}

TEST(Json, NumbersArePlainWhileTheyAreShort) {
    EXPECT_EQ(Json(1e7).dump(), "10000000.0");
    EXPECT_EQ(Json(0.0).dump(), "0.0");
    EXPECT_EQ(Json(-0.00025).dump(), "-0.00025");
    EXPECT_EQ(Json(1e300).dump(), "1e+300");
}

TEST(Json, WhatIsNoTextAndNoNumberIsStillValid) {
    // Alone, cut short, overlong, a surrogate, beyond U+10FFFF.
    for (const char* const wrong :
         {"\xFF", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
        const std::string text = Json(std::string("a") + wrong).dump();
        EXPECT_TRUE(nlohmann::json::accept(text)) << text;
        EXPECT_NE(text.find("\xEF\xBF\xBD"), text.npos);
    }
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
    EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
}

TEST(Json, MembersAreFoundAndAdded) {
    Json value = Json::object({{"a", 1}});
    value["b"] = "x";
    value["a"] = 2;
    EXPECT_EQ(value.dump(), R"({"a":2,"b":"x"})");
    EXPECT_TRUE(std::as_const(value)["c"].is_null());
    EXPECT_EQ(*value["b"].text(), "x");
    EXPECT_FALSE(value["a"].is_true());
}

}  // namespace
}  // namespace hiroba::tools
