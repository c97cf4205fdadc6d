// SPDX-License-Identifier: BSD-3-Clause
// Role: which thread of a team runs on which node.
// Invariant: the members of a node have numbers in a row, in the order of the nodes; no node has
// two more than another, so a team of at least as many threads as nodes leaves none idle.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hiroba::omp {

/// A team of `size` threads spread over `nodes` nodes; both at least 1.
struct TeamShape {
    std::uint32_t size = 1, nodes = 1;

    constexpr std::uint32_t nodes_used() const noexcept { return std::min(size, nodes); }
    constexpr std::uint32_t members_of(std::uint32_t node) const noexcept {
        return size / nodes + (node < size % nodes ? 1 : 0);
    }
    /// The number of the first thread on `node`.
    constexpr std::uint32_t first_of(std::uint32_t node) const noexcept {
        return node * (size / nodes) + std::min(node, size % nodes);
    }
};

}  // namespace hiroba::omp
