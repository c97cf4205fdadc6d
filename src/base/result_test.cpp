// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace hiroba {
namespace {

TEST(Result, HoldsTheValueOrTheErrorAndSaysWhich) {
    Result<std::unique_ptr<int>> value{std::make_unique<int>(7)};
    ASSERT_TRUE(bool(value));
    EXPECT_EQ(**value, 7);

    const Result<std::unique_ptr<int>> error{Error{ErrorKind::environment, "no memory"}};
    ASSERT_FALSE(bool(error));
    EXPECT_EQ(error.error().kind, ErrorKind::environment);
    EXPECT_EQ(error.error().text, "no memory");
}

TEST(Result, OfVoidSucceedsUnlessMadeFromAnError) {
    EXPECT_TRUE(bool(Result<void>{}));
    const Result<void> error{Error{ErrorKind::usage, "-n 0"}};
    ASSERT_FALSE(bool(error));
    EXPECT_EQ(error.error().text, "-n 0");
}

}  // namespace
}  // namespace hiroba
