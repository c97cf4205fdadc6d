// SPDX-License-Identifier: BSD-3-Clause
// Role: the line that hiroba_last_error() gives. Each library of the C face has it; where a process
// loads several of them for all to see, one of them serves all.
#pragma once

#include <string>

#include "hiroba/hiroba.h"

extern "C" HIROBA_API void hiroba_keep_error(const char* line) noexcept;

namespace hiroba::abi {

/// Keeps `line` for hiroba_last_error() of this thread. Returns `code`.
inline int failed(hiroba_code code, const std::string& line) noexcept {
    hiroba_keep_error(line.c_str());
    return code;
}

}  // namespace hiroba::abi
