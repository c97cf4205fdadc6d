// SPDX-License-Identifier: BSD-3-Clause
// Role: how this layer words what it refuses.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace hiroba::acp {

inline Error refused(std::string text) { return {ErrorKind::refused, std::move(text)}; }

inline std::string hexadecimal(std::uint64_t value) {
    char text[19];
    std::snprintf(text, sizeof text, "0x%lx", value);
    return text;
}

}  // namespace hiroba::acp
