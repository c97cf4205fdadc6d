// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/loaded_objects.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace hiroba::omp {
namespace {

int written_in_program = 1;
const int constant_in_program = 2;

bool covers(const std::vector<dsm::AddressRange>& ranges, const void* address) {
    return std::ranges::any_of(ranges, [&](const dsm::AddressRange& range) {
        return range.contains(reinterpret_cast<std::uintptr_t>(address));
    });
}

TEST(LoadedObjects, TheProgramComesFirstAndHoldsItsVariables) {
    const auto objects = loaded_objects();
    ASSERT_FALSE(objects.empty());
    const LoadedObject& program = objects.front();
    EXPECT_EQ(program.kind, LoadedObject::Kind::program);
    EXPECT_EQ(program.path.substr(0, 1), "/");
    EXPECT_TRUE(covers(program.writable, &written_in_program));
    EXPECT_FALSE(covers(program.writable, &constant_in_program));
    EXPECT_TRUE(covers(program.executable, reinterpret_cast<const void*>(&loaded_objects)));
}

TEST(LoadedObjects, NoWritableRangeReachesIntoRelro) {
    // The loader has protected RELRO by now; a range that contains any of it would not be writable.
    for (const LoadedObject& object : loaded_objects()) {
        for (const dsm::AddressRange& range : object.writable) {
            EXPECT_EQ(range.address % page_bytes, 0u);
            EXPECT_EQ(range.bytes % page_bytes, 0u);
            for (std::uintptr_t page = range.address; page < range.end(); page += page_bytes) {
                int pipe_ends[2];
                ASSERT_EQ(pipe(pipe_ends), 0);
                // Not write(): a sanitizer's refuses what lies between variables.
                ASSERT_EQ(syscall(SYS_write, pipe_ends[1], page, 1), 1);
                // The kernel refuses to store into a page that is not writable.
                EXPECT_EQ(syscall(SYS_read, pipe_ends[0], page, 1), 1)
                    << object.path << " page " << std::hex << page;
                close(pipe_ends[0]);
                close(pipe_ends[1]);
            }
        }
    }
}

TEST(LoadedObjects, LibcIsPrivateAndHasABuildId) {
    const auto objects = loaded_objects();
    const auto libc = std::ranges::find_if(
        objects, [](const LoadedObject& object) { return object.path.ends_with("/libc.so.6"); });
    ASSERT_NE(libc, objects.end());
    EXPECT_FALSE(libc->is_global());
    EXPECT_EQ(libc->build_id.bytes, 20);
    EXPECT_EQ(to_text(libc->build_id).size(), 40u);
}

TEST(WritableParts, WithoutRelroTheWholePagesRemain) {
    const auto parts = writable_parts({0x10ff0, 0x20}, {});
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].address, 0x10000u);
    EXPECT_EQ(parts[0].end(), 0x12000u);
}

TEST(WritableParts, RelroAtTheBeginningIsCutAtWholePages) {
    const auto parts = writable_parts({0x10d00, 0x5000}, {0x10d00, 0x1300});
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].address, 0x12000u);
    EXPECT_EQ(parts[0].end(), 0x16000u);
}

TEST(WritableParts, APageThatRelroOnlyBeginsStaysWritable) {
    const auto parts = writable_parts({0x10d00, 0x5000}, {0x10d00, 0x1310});
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].address, 0x12000u);
}

TEST(WritableParts, RelroInTheMiddleLeavesTwo) {
    const auto parts = writable_parts({0x10000, 0x5000}, {0x11000, 0x2000});
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].end(), 0x11000u);
    EXPECT_EQ(parts[1].address, 0x13000u);
}

TEST(WritableParts, ASegmentThatIsAllRelroHasNone) {
    EXPECT_TRUE(writable_parts({0x10000, 0x1000}, {0x10000, 0x1000}).empty());
}

}  // namespace
}  // namespace hiroba::omp
