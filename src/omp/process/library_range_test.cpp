// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/library_range.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "omp/process/later_objects.hpp"

namespace hiroba::omp {
namespace {

#ifndef __SANITIZE_ADDRESS__  // whose own memory lies where the range does

std::uintptr_t map_anywhere(std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

bool lies_in(const dsm::AddressRange& range, std::uintptr_t address) {
    return address - range.address < range.bytes;
}

/// Each test has the range to itself, at the one address that it can have.
class LibraryRanges : public testing::Test {
protected:
    void SetUp() override {
        const auto reserved = libraries.reserve();
        ASSERT_TRUE(reserved) << reserved.error().text;
    }
    void TearDown() override {
        const dsm::AddressRange range = libraries.range();
        ASSERT_EQ(munmap(reinterpret_cast<void*>(range.address), range.bytes), 0);
    }
    LibraryRange libraries;
};

TEST_F(LibraryRanges, what_is_mapped_without_a_wish_goes_there_while_it_is_open_and_nowhere_else) {
    EXPECT_FALSE(lies_in(libraries.range(), map_anywhere(page_bytes)));

    const std::uintptr_t top = libraries.top();
    ASSERT_TRUE(libraries.open(top));
    const std::uintptr_t first = map_anywhere(5 * page_bytes);
    const std::uintptr_t second = map_anywhere(page_bytes);
    libraries.close();
    EXPECT_EQ(first, top - 5 * page_bytes);
    EXPECT_EQ(second, first - page_bytes);
    EXPECT_LT(libraries.top(), second);
    EXPECT_FALSE(lies_in(libraries.range(), map_anywhere(page_bytes)));
}

TEST_F(LibraryRanges, what_was_taken_back_is_given_to_nobody_again) {
    ASSERT_TRUE(libraries.open(libraries.top()));
    const std::uintptr_t gone = map_anywhere(page_bytes);
    libraries.close();
    munmap(reinterpret_cast<void*>(gone), page_bytes);
    libraries.close();
    EXPECT_EQ(mmap(reinterpret_cast<void*>(gone), page_bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
              MAP_FAILED);
}

TEST_F(LibraryRanges, what_a_jump_reaches_below_a_library_is_no_later_ones) {
    constexpr std::size_t reach = std::size_t{2} << 30;
    ASSERT_TRUE(libraries.open(libraries.top()));
    const std::uintptr_t library = map_anywhere(5 * page_bytes);
    libraries.stop_steering();
    libraries.free_above();
    const dsm::AddressRange kept = libraries.keep_room_below(library);
    EXPECT_EQ(kept.end(), library - reach);
    const auto map_at = [](std::uintptr_t address) {
        return mmap(reinterpret_cast<void*>(address), page_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    };
    EXPECT_NE(map_at(library - reach / 2), MAP_FAILED);
    libraries.close();
    EXPECT_EQ(libraries.top(), kept.end());
    EXPECT_EQ(map_at(library - reach / 4), MAP_FAILED);

    ASSERT_TRUE(libraries.open(libraries.top()));
    EXPECT_EQ(map_anywhere(page_bytes), kept.end() - page_bytes);
    libraries.stop_steering();
    libraries.free_above();
    EXPECT_NE(map_at(library - reach / 4), MAP_FAILED);
    libraries.close();
}

/// A library of libc's that no test is linked with, by its path.
std::string one_more_library() {
    Dl_info libc;
    if (dladdr(reinterpret_cast<void*>(&getpid), &libc) == 0) return "";
    const std::string path = libc.dli_fname;
    return path.substr(0, path.rfind('/')) + "/libutil.so.1";
}

struct Opened {
    std::uintptr_t bias = 0, top = 0;
};

/// Opens the library below `top` in a process of its own.
/// @param in_the_way  mapped first by what could be another thread
Opened open_elsewhere(LibraryRange& libraries, std::uintptr_t top, std::size_t in_the_way) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const std::vector<std::uintptr_t> known = loaded_biases();
        bool done = static_cast<bool>(libraries.open(top));
        if (in_the_way != 0) map_anywhere(in_the_way);
        done &= dlopen(one_more_library().c_str(), RTLD_NOW) != nullptr;
        const std::vector<LoadedObject> objects = objects_since(known);
        done &= objects.size() == 1 && lies_in(libraries.range(), objects.front().bias);
        if (!done) _exit(1);
        const Opened opened{objects.front().bias, top_of_room(top, objects)};
        _exit(write(ends[1], &opened, sizeof opened) == sizeof opened ? 0 : 1);
    }
    Opened opened;
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (status == 0) {
        EXPECT_EQ(read(ends[0], &opened, sizeof opened), long{sizeof opened});
    }
    close(ends[0]);
    close(ends[1]);
    return opened;
}

TEST_F(LibraryRanges, below_top_of_room_another_node_finds_the_same_place) {
    const std::uintptr_t top = libraries.top();
    const Opened alone = open_elsewhere(libraries, top, 0);
    EXPECT_EQ(alone.top, top);
    const Opened below = open_elsewhere(libraries, top, 65 * page_bytes);
    EXPECT_EQ(below.bias, alone.bias - 65 * page_bytes);
    EXPECT_EQ(open_elsewhere(libraries, below.top, 0).bias, below.bias);
}

TEST_F(LibraryRanges, opens_while_another_thread_maps_and_unmaps) {
    std::atomic<bool> done{false};
    // An allocator does this when a thread starts: a larger mapping first, then its ends go back.
    std::thread other{[&] {
        while (!done) munmap(reinterpret_cast<void*>(map_anywhere(page_bytes)), page_bytes);
    }};
    int opened = 0;
    for (int i = 0; i < 200; ++i) {
        opened += static_cast<bool>(libraries.open(libraries.top()));
        libraries.close();
    }
    done = true;
    other.join();
    EXPECT_EQ(opened, 200);
}

TEST_F(LibraryRanges, a_top_above_what_is_used_is_refused) {
    const std::uintptr_t top = libraries.top();
    ASSERT_TRUE(libraries.open(top));
    map_anywhere(page_bytes);
    libraries.close();
    const auto refused = libraries.open(top);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text.find("in the way"), std::string::npos);
}

#endif

}  // namespace
}  // namespace hiroba::omp
