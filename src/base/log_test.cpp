// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/trace.hpp"

namespace hiroba {
namespace {

class Log : public testing::Test {
protected:
    ~Log() override {
        EXPECT_TRUE(bool(set_log("")));
        set_trace(false);
    }
};

/// What `body` writes to stderr.
template <class Body>
std::string told_by(Body body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
}

TEST_F(Log, IsSilentUntilAsked) {
    EXPECT_EQ(told_by([] { log(LogLayer::dsm, LogLevel::info, "x"); }), "");
}

TEST_F(Log, SpeaksUpToTheLevelOfTheLayer) {
    ASSERT_TRUE(bool(set_log("info,dsm=debug,net=silent")));
    EXPECT_EQ(told_by([] {
                  log(LogLayer::dsm, LogLevel::debug, "image %u", 7u);
                  log(LogLayer::omp, LogLevel::info, "once");
                  log(LogLayer::omp, LogLevel::debug, "not this");
                  log(LogLayer::net, LogLevel::info, "nor this");
              }),
              "hiroba: dsm debug: image 7\nhiroba: omp info: once\n");
}

TEST_F(Log, RefusesWhatDoesNotExistAndThenChangesNothing) {
    ASSERT_TRUE(bool(set_log("info")));
    for (const char* text : {"loud", "dsm=loud", "disk=info", "info,", "=info", "dsm", ",info"}) {
        const Result<void> set = set_log(text);
        if (std::string(text) == "info,") {
            EXPECT_TRUE(bool(set));  // an empty rest says nothing
            continue;
        }
        ASSERT_FALSE(bool(set)) << text;
        EXPECT_EQ(set.error().kind, ErrorKind::usage);
        EXPECT_TRUE(set.error().text.starts_with("HIROBA_LOG: '")) << set.error().text;
    }
    EXPECT_TRUE(logs(LogLayer::gas, LogLevel::info));
}

TEST_F(Log, PrintsTheEventsOfALayerAtLevelTrace) {
    setenv("HIROBA_LOG", "silent,dsm=trace", 1);
    ASSERT_TRUE(bool(set_up_diagnostics()));
    unsetenv("HIROBA_LOG");
    EXPECT_EQ(told_by([] {
                  trace("dsm.fault", 16, 1);
                  trace("omp.fork", 2, 3);
              }),
              "hiroba: dsm.fault 0x10 0x1\n");
}

TEST_F(Log, SettingTraceRecordsWithoutPrinting) {
    setenv("HIROBA_TRACE", "1", 1);
    ASSERT_TRUE(bool(set_up_diagnostics()));
    unsetenv("HIROBA_TRACE");
    EXPECT_TRUE(trace_is_on.load());
    EXPECT_EQ(told_by([] { trace("dsm.fault"); }), "");
}

}  // namespace
}  // namespace hiroba
