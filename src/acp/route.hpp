// SPDX-License-Identifier: BSD-3-Clause
// Role: when a command may follow another that is still under way, without an answer in between.
// Invariant: pure. Messages between two nodes are carried out in the order sent, so along one way
// the effects of two commands come in order; where ways part, only the answer tells.
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.hpp"

namespace hiroba::acp {

/// The nodes a command's messages visit, its origin first; equal neighbours are one.
struct Way {
    std::array<std::uint32_t, 3> nodes{};
    std::uint32_t count = 0;

    constexpr void visit(NodeId node) {
        if (count == 0 || nodes[count - 1] != node.value) nodes[count++] = node.value;
    }
    constexpr bool operator==(const Way& other) const = default;
};

/// What decides about the way: the node that asks, those of src and dst, whether src is changed.
struct Route {
    NodeId origin, src, dst;
    bool is_atomic = false;

    /// Up to the last thing the command changes: dst.
    constexpr Way whole() const {
        Way way;
        for (const NodeId node : {origin, src, dst}) way.visit(node);
        return way;
    }
    /// Up to the first thing it changes: src for an atomic, else dst.
    constexpr Way to_first_effect() const {
        if (!is_atomic) return whole();
        Way way;
        for (const NodeId node : {origin, src}) way.visit(node);
        return way;
    }
};

/// True when `next`, sent right behind `previous`, changes nothing before `previous` has changed
/// all it will. A copy may read its source earlier; only what `previous` writes could tell, and
/// that lies at the end of the way, behind the reading.
constexpr bool may_follow(const Route& previous, const Route& next) {
    return previous.whole() == next.to_first_effect();
}

}  // namespace hiroba::acp
