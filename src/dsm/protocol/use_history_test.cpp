// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/protocol/use_history.hpp"

#include <gtest/gtest.h>

namespace hiroba::dsm {
namespace {

/// Notices until the next one that invalidates.
int updates(UseHistory& history) {
    int count = 0;
    while (history.update_now()) ++count;
    return count;
}

TEST(use_history, a_copy_without_history_is_invalidated) {
    UseHistory history;
    EXPECT_FALSE(history.update_now());
}

TEST(use_history, a_first_touch_proves_nothing) {
    UseHistory history;
    history.used();
    EXPECT_FALSE(history.update_now());
}

TEST(use_history, each_use_after_an_invalidation_doubles_the_updates_up_to_a_bound) {
    UseHistory history;
    EXPECT_EQ(updates(history), 0);
    for (const int expected : {4, 8, 16, 32, 64, 64}) {
        history.used();
        EXPECT_EQ(updates(history), expected);
    }
}

TEST(use_history, a_second_notice_without_use_ends_the_updates) {
    UseHistory history;
    updates(history);
    history.used();
    updates(history);
    history.not_used();
    history.used();
    EXPECT_EQ(updates(history), 0);
    history.used();
    EXPECT_EQ(updates(history), UseHistory::budget_first);
}

}  // namespace
}  // namespace hiroba::dsm
