// SPDX-License-Identifier: BSD-3-Clause
// Role: the one file that is compiled anew when version or build type change.
#include "tools/build.hpp"

namespace hiroba::tools {

const char* const build_version = HIROBA_BUILD_VERSION;
const char* const build_type = HIROBA_BUILD_TYPE;
const char* const build_compiler = HIROBA_BUILD_COMPILER;
const char* const build_runtime_folder = HIROBA_BUILD_RUNTIME_FOLDER;
const char* const build_programs_folder = HIROBA_BUILD_PROGRAMS_FOLDER;

}  // namespace hiroba::tools
