// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/memory/memory_limit.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace hiroba::abi {
namespace {

/// A tree as the kernel shows it.
class Groups : public testing::Test {
protected:
    Groups() {
        char name[] = "/tmp/memory_limit_XXXXXX";
        root_ = mkdtemp(name);
    }
    ~Groups() override { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const char* text) {
        const std::filesystem::path full = root_ + path;
        std::filesystem::create_directories(full.parent_path());
        std::ofstream(full) << text << '\n';
    }
    std::string root_;
};

TEST_F(Groups, the_least_on_the_way_up_counts) {
    write("/memory.max", "max");
    write("/a/memory.max", "1000");
    write("/a/b/memory.max", "4000");
    EXPECT_EQ(group_memory_limit("0::/a/b\n", root_.c_str()), 1000u);
    EXPECT_EQ(group_memory_limit("0::/\n", root_.c_str()), UINT64_MAX);
}

TEST_F(Groups, the_older_hierarchy_is_read_too) {
    write("/memory/memory.limit_in_bytes", "9223372036854771712");
    write("/memory/job/memory.limit_in_bytes", "5000");
    EXPECT_EQ(group_memory_limit("9:cpu:/job\n4:memory:/job\n0::/\n", root_.c_str()), 5000u);
}

TEST_F(Groups, nothing_readable_is_no_limit) {
    EXPECT_EQ(group_memory_limit("4:memory:/job\nnonsense\n", root_.c_str()), UINT64_MAX);
    EXPECT_EQ(group_memory_limit("", root_.c_str()), UINT64_MAX);
}

TEST(MemoryLimit, both_copies_of_what_is_used_count) {
    setenv("HIROBA_MEMORY", "1000", 1);
    learn_memory_limit();
    EXPECT_TRUE(fits_memory(0, 500));
    EXPECT_FALSE(fits_memory(0, 501));
    EXPECT_TRUE(fits_memory(400, 100));
    EXPECT_FALSE(fits_memory(400, 101));
    EXPECT_FALSE(fits_memory(600, 0));
    EXPECT_FALSE(fits_memory(1, UINT64_MAX));
    unsetenv("HIROBA_MEMORY");
}

}  // namespace
}  // namespace hiroba::abi
