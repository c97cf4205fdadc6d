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

TEST(ThreadsApart, data_of_threads_do) {
    EXPECT_TRUE(does("__thread int own; int* work(void) { return &own; }"));
}

TEST(ThreadsApart, emulated_data_of_threads_do) {
    EXPECT_TRUE(
        does("void* __emutls_get_address(void*); void* control[4];"
             "int* work(void) { return __emutls_get_address(control); }"));
}

TEST(ThreadsApart, whoever_asks_for_its_thread_does) {
    for (const char* const call : {"pthread_self()", "syscall(186)", "pthread_key_create(0, 0)"})
        EXPECT_TRUE(does(std::string{"long work(void) { return (long)"} + call + "; }")) << call;
    for (const char* const flags : {"-fno-plt", "-Wl,-z,now", "-Wl,--hash-style=sysv"})
        EXPECT_TRUE(does("long work(void) { return gettid(); }", flags)) << flags;
}

// As a pointer to a function, too.
TEST(ThreadsApart, whoever_has_its_address_does) {
    EXPECT_TRUE(does("long pthread_self(void); long (*ask)(void) = pthread_self;"));
}

TEST(ThreadsApart, who_has_its_own_function_of_that_name_does_not) {
    EXPECT_FALSE(does("long gettid(void) { return 7; } long work(void) { return gettid(); }"));
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
