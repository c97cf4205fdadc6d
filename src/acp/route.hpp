// SPDX-License-Identifier: BSD-3-Clause
// Role: when a command may follow another that is still under way, without an answer in between.
// Invariant: pure. Messages of one color between two nodes are carried out in the order sent, so
// along one way the effects of two commands come in order; where ways part, only the answer tells.
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.hpp"

namespace hiroba::acp {

/// The nodes a command's messages visit, its origin first, and the colors they travel by; equal
/// neighbours are one.
struct Way {
    std::array<std::uint32_t, 3> nodes{}, colors{};
    std::uint32_t count = 0;

    /// @param color  of the way there
    constexpr void visit(NodeId node, std::uint32_t color) {
        if (count != 0 && nodes[count - 1] == node.value) return;
        nodes[count] = node.value;
        colors[count++] = color;
    }
    constexpr bool operator==(const Way& other) const = default;
};

/// What decides about the way: the node that asks, those of src and dst, whether src is changed,
/// and the colors that both are registered with.
struct Route {
    NodeId origin, src, dst;
    bool is_atomic = false;
    std::uint32_t src_color = 0, dst_color = 0;

    /// Up to the last thing the command changes: dst.
    constexpr Way whole() const {
        Way way = to_src();
        way.visit(dst, dst_color);
        return way;
    }
    /// Up to the first thing it changes: src for an atomic, else dst.
    constexpr Way to_first_effect() const { return is_atomic ? to_src() : whole(); }

private:
    constexpr Way to_src() const {
        Way way;
        way.visit(origin, 0);
        way.visit(src, src_color);
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
