// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/threads_apart.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>

#include "omp/process/system_libraries.hpp"

namespace hiroba::omp {
namespace {

/// Whether a library of this C text would tell its threads apart.
bool does(const std::string& text, const std::string& flags = "") {
    static int made = 0;
    const std::string folder = testing::TempDir();
    const std::string name = folder + "threads_apart_" + std::to_string(++made);
    std::ofstream{name + ".c"} << text;
    const std::string command =
        "cc -shared -fPIC -w " + flags + " -o " + name + ".so " + name + ".c";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    void* const library = dlopen((name + ".so").c_str(), RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    for (const LoadedObject& object : loaded_objects())
        if (object.path == name + ".so") return tell_threads_apart({object});
    ADD_FAILURE() << name << " is not loaded";
    return false;
}

TEST(ThreadsApart, plain_code_does_not) {
    EXPECT_FALSE(
        does("#include <stdio.h>\n#include <stdlib.h>\n"
             "int work(int n) { puts(\"\"); free(malloc(n)); return n; }"));
}

TEST(ThreadsApart, data_of_threads_do_where_no_call_leads_to_them) {
    EXPECT_FALSE(does("__thread int own; int* work(void) { return &own; }"));
    EXPECT_TRUE(
        does("__thread int own; int* work(void) { return &own; }", "-ftls-model=initial-exec"));
    EXPECT_TRUE(does("__thread int own; int* work(void) { return &own; }",
                     "-mtls-dialect=gnu2 -Wl,-z,now"));
}

TEST(ThreadsApart, whoever_asks_without_a_note_does) {
    EXPECT_TRUE(does("long work(void) { return sigset(0, 0); }"));
    for (const char* const flags : {"-fno-plt", "-Wl,-z,now", "-Wl,--hash-style=sysv"})
        EXPECT_TRUE(does("long work(void) { return capset(0, 0); }", flags)) << flags;
}

TEST(ThreadsApart, what_is_noted_when_it_happens_does_not) {
    for (const char* const call : {"pthread_self()", "syscall(186)", "pthread_key_create(0, 0)"})
        EXPECT_FALSE(does(std::string{"long work(void) { return (long)"} + call + "; }")) << call;
}

// As a pointer to a function, too.
TEST(ThreadsApart, whoever_has_its_address_does) {
    EXPECT_TRUE(does("long setfsuid(void); long (*ask)(void) = setfsuid;"));
}

TEST(ThreadsApart, who_has_its_own_function_of_that_name_does_not) {
    EXPECT_FALSE(does("long capset(void) { return 7; } long work(void) { return capset(); }"));
}

TEST(ThreadsApart, the_systems_libraries_do_not_count) {
    for (const LoadedObject& object : loaded_objects()) {
        if (!object.is_global()) {
            EXPECT_FALSE(tell_threads_apart({object})) << object.path;
        }
    }
}

}  // namespace
}  // namespace hiroba::omp
