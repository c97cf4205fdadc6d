// SPDX-License-Identifier: BSD-3-Clause
// Role: names for borrowed bytes.
#pragma once

#include <cstddef>
#include <span>

namespace hiroba {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t cache_line_bytes = 64;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
    return (value + unit - 1) / unit * unit;
}
constexpr std::size_t round_down(std::size_t value, std::size_t unit) {
    return value / unit * unit;
}

}  // namespace hiroba
