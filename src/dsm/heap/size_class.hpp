// SPDX-License-Identifier: BSD-3-Clause
// Role: which sizes small blocks have: 16-byte steps up to 256, then eight steps per doubling.
// Invariant: a class wastes at most 15 bytes or an eighth of the request (powers of two doubled the
// memory of list-building programs); every size is a multiple of 16; a page and more is no class.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace hiroba::dsm {

inline constexpr std::size_t small_bytes_max = page_bytes - page_bytes / 16;  // 3840
inline constexpr std::size_t small_step_bytes = 16;
inline constexpr std::size_t even_steps_end = 256;  ///< up to here every multiple of 16 is a class
inline constexpr std::uint32_t even_classes = even_steps_end / small_step_bytes;

/// The class of the smallest size that holds `bytes` (0 counts as 1). At most small_bytes_max.
constexpr std::uint32_t size_class_of(std::size_t bytes) noexcept {
    if (bytes == 0) bytes = 1;
    if (bytes <= even_steps_end) {
        return static_cast<std::uint32_t>((bytes - 1) / small_step_bytes);
    }
    // bytes - 1 lies in [2^top, 2^(top + 1)); the three bits below the top one choose the step.
    const auto top = static_cast<std::uint32_t>(std::bit_width(bytes - 1)) - 1;
    const auto step = static_cast<std::uint32_t>((bytes - 1) >> (top - 3)) & 7u;
    return even_classes + (top - 8) * 8 + step;
}

/// Bytes of a block of `size_class`.
constexpr std::size_t class_bytes(std::uint32_t size_class) noexcept {
    if (size_class < even_classes) return (size_class + 1) * small_step_bytes;
    const std::uint32_t top = (size_class - even_classes) / 8 + 8;
    const std::uint32_t step = (size_class - even_classes) % 8;
    return (std::size_t{9} + step) << (top - 3);
}

inline constexpr std::uint32_t size_classes = size_class_of(small_bytes_max) + 1;
static_assert(class_bytes(size_classes - 1) == small_bytes_max);

}  // namespace hiroba::dsm
