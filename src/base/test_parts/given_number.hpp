// SPDX-License-Identifier: BSD-3-Clause
// Role: for tests, the numbers of their long forms and of their replays, which the environment
// gives.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace hiroba {

/// Returns the number that the environment variable `name` holds, decimal or 0x...; `otherwise`
/// where it is not set.
inline std::uint64_t given_number(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace hiroba
