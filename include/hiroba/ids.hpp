// SPDX-License-Identifier: BSD-3-Clause
// Role: the strong id types every layer shares.
// Invariant: an id is a plain number with a name; it owns nothing and is never negative.
#pragma once

#include <compare>
#include <cstdint>

namespace hiroba {

/// One process of the job; `value` is its rank, 0 to nodes - 1.
struct NodeId {
    std::uint32_t value = 0;
    constexpr auto operator<=>(const NodeId&) const = default;
};

}  // namespace hiroba
