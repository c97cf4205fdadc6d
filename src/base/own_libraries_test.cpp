// SPDX-License-Identifier: BSD-3-Clause
#include "base/own_libraries.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace hiroba {
namespace {

/// The permissions of the page at `address`, as /proc tells them; empty where nothing is mapped.
std::string permissions_at(std::uintptr_t address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::size_t at = 0;
        const std::uintptr_t begin = std::stoul(line, &at, 16);
        const std::uintptr_t end = std::stoul(line.substr(at + 1), &at, 16);
        if (begin <= address && address < end) return line.substr(line.find(' ') + 1, 4);
    }
    return {};
}

/// What a process leaves behind that loads the library so and calls exit().
struct Ended {
    int status = -1;
    std::string said;
};

[[noreturn]] void load_and_exit(AtExit at_exit, int told) {
    void* library = nullptr;
    {
        const LoadingOwnLibraries own{at_exit};
        library = ::dlopen(HIROBA_LAST_WORDS, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) ::_exit(4);
    const auto tell = reinterpret_cast<void (*)(int)>(::dlsym(library, "tell_end_to"));
    if (tell == nullptr) ::_exit(5);
    tell(told);
    link_map* map = nullptr;
    if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) ::_exit(6);
    // The section is as read-only as the linker wanted it.
    if (permissions_at(reinterpret_cast<std::uintptr_t>(map->l_ld)) != "r--p") ::_exit(7);
    ::exit(0);
}

Ended run(AtExit at_exit) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) load_and_exit(at_exit, ends[1]);
    ::close(ends[1]);
    Ended ended;
    char said[16];
    for (ssize_t bytes; (bytes = ::read(ends[0], said, sizeof said)) > 0;)
        ended.said.append(said, static_cast<std::size_t>(bytes));
    ::close(ends[0]);
    ::waitpid(child, &ended.status, 0);
    return ended;
}

TEST(OwnLibraries, that_are_left_usable_are_not_finalized_at_exit) {
    const Ended ended = run(AtExit::leave_usable);
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.said, "");
}

TEST(OwnLibraries, that_are_to_be_finalized_are_once) {
    const Ended ended = run(AtExit::finalize);
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.said, "f");
}

}  // namespace
}  // namespace hiroba
