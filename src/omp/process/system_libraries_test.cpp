// SPDX-License-Identifier: BSD-3-Clause
#include "omp/process/system_libraries.hpp"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <string>

#include "omp/process/loaded_objects.hpp"

namespace hiroba::omp {
namespace {

std::string libc_folder() {
    dl_find_object libc;
    EXPECT_EQ(_dl_find_object(const_cast<char*>(gnu_get_libc_version()), &libc), 0);
    const std::string path = libc.dlfo_link_map->l_name;
    return path.substr(0, path.rfind('/'));
}

/// A folder that is gone at the end, with a link to libc's libm in it.
struct Folder {
    Folder() {
        char name[] = "/tmp/librariesXXXXXX";
        path = mkdtemp(name);
        EXPECT_EQ(symlink((libc_folder() + "/libm.so.6").c_str(), link().c_str()), 0);
    }
    ~Folder() {
        unlink(link().c_str());
        rmdir(path.c_str());
    }
    std::string link() const { return path + "/libm.so.6"; }
    std::string path;
};

TEST(SystemLibraries, PartsOfLibcAreThoseBesideIt) {
    EXPECT_TRUE(is_system_library(libc_folder() + "/libm.so.6", 0, 0));
    EXPECT_TRUE(is_system_library(libc_folder() + "/../" +
                                      libc_folder().substr(libc_folder().rfind('/') + 1) +
                                      "/libutil.so.1",
                                  0, 0));
    EXPECT_FALSE(is_system_library(libc_folder() + "/libmine.so.6", 0, 0));
    EXPECT_FALSE(is_system_library("./libutil.so", 0, 0));
    EXPECT_FALSE(is_system_library("/opt/project/lib/libcrypt.so", 0, 0));
    EXPECT_FALSE(is_system_library("libutil.so", 0, 0));
}

TEST(SystemLibraries, ALinkToAPartOfLibcIsThatPart) {
    const Folder folder;
    EXPECT_TRUE(is_system_library(folder.link(), 0, 0));
}

TEST(SystemLibraries, ALanguageRuntimeIsKnownByItsEntryPoints) {
    for (const LoadedObject& object : loaded_objects()) {
        if (object.path.find("/libc.so") == std::string::npos) continue;
        // Called like the runtime, from anywhere, but without what it is called for.
        EXPECT_FALSE(is_system_library("/a/libgfortran.so.5", 1, object.dynamic));
        EXPECT_FALSE(is_system_library("/a/libunwind.so", 1, object.dynamic));
    }
    for (const LoadedObject& object : loaded_objects()) {
        if (object.path.find("/libstdc++.so") == std::string::npos) continue;
        EXPECT_TRUE(
            is_system_library("/opt/gcc-13/lib64/libstdc++.so.6", object.bias + 1, object.dynamic));
    }
}

TEST(SystemLibraries, TheLoaderIsKnownByWhereItIs) {
    EXPECT_TRUE(is_system_library("/any/where", getauxval(AT_BASE), 0));
}

TEST(SystemLibraries, SymbolsAreFoundInTheObjectThatDefinesThem) {
    bool found = false;
    for (const LoadedObject& object : loaded_objects()) {
        const bool is_libc = object.path.find("/libc.so") != std::string::npos;
        found |= is_libc;
        EXPECT_EQ(defines_symbol(object.bias, object.dynamic, "gnu_get_libc_version"), is_libc)
            << object.path;
        EXPECT_FALSE(defines_symbol(object.bias, object.dynamic, "nothing_is_called_so"));
    }
    EXPECT_TRUE(found);
}

}  // namespace
}  // namespace hiroba::omp
