// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/fingerprint.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "net/bootstrap/job.hpp"

namespace hiroba::omp {
namespace {

std::vector<LoadedObject> two_objects() {
    LoadedObject program;
    program.path = "/home/user/solver";
    program.bias = 0x555555554000;
    program.build_id.bytes = 2;
    program.build_id.value = {0xab, 0xcd};
    program.writable = {{0x555555560000, 0x2000}};
    LoadedObject library;
    library.path = "/lib/libc.so.6";
    library.kind = LoadedObject::Kind::system_library;
    library.bias = 0x7ffff7c00000;
    library.build_id.bytes = 2;
    library.build_id.value = {0x12, 0x34};
    return {program, library};
}

std::string difference(const std::vector<LoadedObject>& theirs) {
    const auto node_0 = std::make_unique<Fingerprint>(take_fingerprint(two_objects(), 2));
    const auto other = std::make_unique<Fingerprint>(take_fingerprint(theirs, 2));
    return first_difference(*node_0, *other, 3).value_or("none");
}

TEST(Fingerprint, EqualProcessesHaveEqualBytes) {
    const auto a = std::make_unique<Fingerprint>(take_fingerprint(loaded_objects(), 2));
    const auto b = std::make_unique<Fingerprint>(take_fingerprint(loaded_objects(), 2));
    EXPECT_FALSE(first_difference(*a, *b, 1).has_value());
    EXPECT_EQ(std::memcmp(a.get(), b.get(), sizeof *a), 0);
    EXPECT_EQ(difference(two_objects()), "none");
}

TEST(Fingerprint, FitsInOneGather) {
    EXPECT_LE(sizeof(Fingerprint), net::ControlChannel::gather_bytes_max);
}

TEST(Fingerprint, AnotherBuildIsNamedWithBothIds) {
    auto theirs = two_objects();
    theirs[1].build_id.value[1] = 0x35;
    const std::string text = difference(theirs);
    EXPECT_NE(text.find("libc.so.6"), std::string::npos) << text;
    EXPECT_NE(text.find("1234"), std::string::npos) << text;
    EXPECT_NE(text.find("1235"), std::string::npos) << text;
    EXPECT_NE(text.find("node 3"), std::string::npos) << text;
}

TEST(Fingerprint, AnotherAddressIsNamed) {
    auto theirs = two_objects();
    theirs[0].bias += 0x1000;
    const std::string text = difference(theirs);
    EXPECT_NE(text.find("solver"), std::string::npos) << text;
    EXPECT_NE(text.find("andomization"), std::string::npos) << text;
}

TEST(Fingerprint, ALibraryMoreIsNoticed) {
    auto theirs = two_objects();
    theirs.push_back(theirs[1]);
    EXPECT_NE(difference(theirs), "none");
}

TEST(Fingerprint, ADifferenceBeyondTheTableIsNoticed) {
    std::vector<LoadedObject> many(Fingerprint::objects_max + 4, two_objects()[1]);
    auto theirs = many;
    theirs.back().bias += 0x1000;
    const auto a = std::make_unique<Fingerprint>(take_fingerprint(many, 1));
    const auto b = std::make_unique<Fingerprint>(take_fingerprint(theirs, 1));
    EXPECT_TRUE(first_difference(*a, *b, 1).has_value());
}

TEST(Fingerprint, StackLimitThreadsAndProcessorAreCompared) {
    const auto a = std::make_unique<Fingerprint>(take_fingerprint(two_objects(), 2));
    for (const int changed : {0, 1, 2}) {
        auto b = std::make_unique<Fingerprint>(*a);
        if (changed == 0) b->stack_limit += 1;
        if (changed == 1) b->threads_per_node += 1;
        if (changed == 2) b->processor[1] ^= 1;
        EXPECT_TRUE(first_difference(*a, *b, 1).has_value()) << changed;
    }
}

TEST(Fingerprint, CodeWithoutABuildIdIsComparedByItsBytes) {
    static std::uint8_t code[64] = {1, 2, 3};
    LoadedObject object = two_objects()[0];
    object.build_id = {};
    object.executable = {{reinterpret_cast<std::uintptr_t>(code), sizeof code}};
    const std::vector<LoadedObject> objects{object};
    const auto before = std::make_unique<Fingerprint>(take_fingerprint(objects, 1));
    code[63] = 9;
    const auto after = std::make_unique<Fingerprint>(take_fingerprint(objects, 1));
    EXPECT_TRUE(first_difference(*before, *after, 1).has_value());
}

}  // namespace
}  // namespace hiroba::omp
