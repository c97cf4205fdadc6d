// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/program_vectors.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace hiroba::omp {
namespace {

std::size_t bytes_asked = 0;
void* allocate(std::size_t bytes) {
    bytes_asked = bytes;
    return std::malloc(bytes);
}

/// A process's start vectors as the kernel lays them out.
struct KernelBlock {
    char name[2] = "p", argument[5] = "arg ", empty[1] = "", variable[8] = "NAME=17";
    std::vector<std::uintptr_t> words{
        word(name), word(argument), word(empty), 0, word(variable), 0,
        AT_PAGESZ,  4096,           AT_UID,      7, AT_NULL,        0};
    char** argv() { return reinterpret_cast<char**>(words.data()); }
    static std::uintptr_t word(char* text) { return reinterpret_cast<std::uintptr_t>(text); }
};

TEST(ProgramVectors, TheCopyHasTheKernelsLayoutAndItsOwnStrings) {
    KernelBlock block;
    const auto auxiliary = auxiliary_vector(3, block.argv());
    ASSERT_EQ(auxiliary.size(), 3u);
    char changed[] = "OTHER=1";
    char* const environment[] = {changed, block.variable, nullptr};

    const ProgramVectors copy = copy_vectors(3, block.argv(), environment, auxiliary, &allocate);
    std::memset(changed, 'x', sizeof changed - 1);
    block.name[0] = 'q';

    EXPECT_STREQ(copy.argv[0], "p");
    EXPECT_STREQ(copy.argv[1], "arg ");
    EXPECT_STREQ(copy.argv[2], "");
    EXPECT_EQ(copy.argv[3], nullptr);
    ASSERT_EQ(copy.environment, copy.argv + 4);
    EXPECT_STREQ(copy.environment[0], "OTHER=1");
    EXPECT_STREQ(copy.environment[1], "NAME=17");
    EXPECT_EQ(copy.environment[2], nullptr);
    const auto again = auxiliary_vector(3, copy.argv);
    ASSERT_EQ(again.size(), 3u);
    EXPECT_EQ(again[1].a_type, static_cast<std::uint64_t>(AT_UID));
    EXPECT_EQ(again[1].a_un.a_val, 7u);
    // 4 + 3 pointers, 3 entries of two words, and the strings.
    EXPECT_EQ(bytes_asked, 7 * 8 + 3 * 16 + 2 + 5 + 1 + 8 + 8);
    std::free(copy.argv);
}

TEST(ProgramVectors, NoArgumentsAndNoEnvironmentAreFine) {
    std::vector<std::uintptr_t> words{0, 0, AT_NULL, 0};
    char** const argv = reinterpret_cast<char**>(words.data());
    const ProgramVectors copy =
        copy_vectors(0, argv, argv + 1, auxiliary_vector(0, argv), &allocate);
    EXPECT_EQ(copy.argv[0], nullptr);
    EXPECT_EQ(copy.environment[0], nullptr);
    EXPECT_EQ(auxiliary_vector(0, copy.argv).size(), 1u);
    std::free(copy.argv);
}

}  // namespace
}  // namespace hiroba::omp
