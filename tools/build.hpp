// SPDX-License-Identifier: BSD-3-Clause
// Role: facts of this build, which CMake hands to build.cpp.
#pragma once

namespace hiroba::tools {

extern const char* const build_version;
extern const char* const build_type;
extern const char* const build_compiler;
/// Where libhiroba.so is once installed, from the folder of the commands.
extern const char* const build_runtime_folder;
/// Likewise where programs are that only commands start.
extern const char* const build_programs_folder;

}  // namespace hiroba::tools
