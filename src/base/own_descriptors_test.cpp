// SPDX-License-Identifier: BSD-3-Clause
#include "base/own_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace hiroba {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(OwnDescriptors, leave_the_low_numbers_to_the_program) {
    const int low = open_null();
    const int kept = keep_descriptor(low);
    EXPECT_GT(kept, 500);
    EXPECT_TRUE(is_kept_descriptor(kept));
    EXPECT_FALSE(is_kept_descriptor(low));
    EXPECT_NE(::fcntl(kept, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(open_null(), low);  // the lowest free number again
    ::close(low);
    close_kept_descriptor(kept);
    EXPECT_FALSE(is_kept_descriptor(kept));
    EXPECT_EQ(::fcntl(kept, F_GETFD), -1);
}

TEST(OwnDescriptors, stay_where_there_is_no_room_for_high_numbers) {
    rlimit former{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &former), 0);
    const rlimit few{64, former.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const int low = open_null();
    const int kept = keep_descriptor(low);
    ::setrlimit(RLIMIT_NOFILE, &former);
    EXPECT_EQ(kept, low);
    EXPECT_TRUE(is_kept_descriptor(kept));
    close_kept_descriptor(kept);
}

TEST(OwnDescriptors, that_are_none_are_not_kept) {
    errno = ENFILE;
    EXPECT_EQ(keep_descriptor(-1), -1);
    EXPECT_EQ(errno, ENFILE);
    EXPECT_FALSE(is_kept_descriptor(-1));
    EXPECT_FALSE(is_kept_descriptor(1 << 20));
}

}  // namespace
}  // namespace hiroba
