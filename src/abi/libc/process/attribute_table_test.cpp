// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/attribute_table.hpp"

#include <gtest/gtest.h>
#include <linux/prctl.h>
#include <sys/syscall.h>

#include <set>
#include <string>

namespace hiroba::abi {
namespace {

TEST(AttributeTable, each_attribute_has_one_row_and_its_calls_find_it) {
    std::set<std::string> names;
    for (const Attribute& row : all_attributes()) {
        EXPECT_TRUE(names.insert(row.name).second) << "twice: " << row.name;
        for (const AttributeCall& call : row.calls) {
            if (call.number == 0) break;
            EXPECT_EQ(attribute_changed_by(call.number, call.first_argument), &row) << row.name;
        }
    }
}

TEST(AttributeTable, what_a_program_is_locked_in_by_is_never_left_to_one_node) {
    for (const long number : {SYS_unshare, SYS_setns, SYS_chroot, SYS_pivot_root, SYS_capset})
        EXPECT_NE(attribute_changed_by(number, 0)->way, Way::own) << number;
    EXPECT_EQ(attribute_changed_by(SYS_prctl, PR_SET_SECCOMP)->way, Way::refused);
    EXPECT_EQ(attribute_changed_by(SYS_seccomp, 1)->way, Way::refused);
}

TEST(AttributeTable, a_call_that_only_asks_changes_nothing) {
    constexpr long get_action_avail = 2;
    EXPECT_EQ(attribute_changed_by(SYS_seccomp, get_action_avail), nullptr);
    EXPECT_EQ(attribute_changed_by(SYS_prctl, PR_GET_SECCOMP), nullptr);
    EXPECT_EQ(attribute_changed_by(SYS_getuid, 0), nullptr);
    EXPECT_EQ(attribute_changed_by(-1, 0), nullptr);
    EXPECT_EQ(attribute_changed_by(1 << 20, 0), nullptr);
}

}  // namespace
}  // namespace hiroba::abi
