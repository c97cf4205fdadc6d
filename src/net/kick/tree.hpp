// SPDX-License-Identifier: BSD-3-Clause
// Role: who kicks whom in a group: a tree of arity 8, and what its algorithms need of a transport.
// Source: Tanabe et al., DIMMnet-1, section 5.3: eight one-byte flags fit one load.
#pragma once

#include <concepts>
#include <cstdint>

namespace hiroba::net::kick {

inline constexpr std::uint32_t tree_arity = 8;

/// What a collective needs: kicks to members of its group and looks at its own memory. Offsets
/// count from the start of the collective's part, which every member has. Kicks from one member to
/// another land in the order given; `..._with_next` may wait for the next one. `flush(member)` ends
/// the sleep of whoever waits for them.
template <class W>
concept Lines = requires(W wire, std::uint32_t member, std::uint32_t offset, std::uint8_t byte,
                         std::uint64_t word) {
    wire.kick_byte(member, offset, byte);
    wire.kick_word(member, offset, word);
    wire.kick_word_with_next(member, offset, word);
    wire.flush(member);
    { wire.byte_at(offset) } -> std::same_as<std::uint8_t>;
    { wire.word_at(offset) } -> std::same_as<std::uint64_t>;
};

/// Whether every member kicks every other, or each its parent and, from the root, its children.
enum class Shape : std::uint8_t { all_to_all, tree };

constexpr Shape shape_for(std::uint32_t members) {
    return members <= tree_arity ? Shape::all_to_all : Shape::tree;
}

/// A member's place in the tree.
struct TreeNode {
    std::uint32_t index;
    std::uint32_t members;

    constexpr bool is_root() const { return index == 0; }
    constexpr std::uint32_t parent() const { return (index - 1) / tree_arity; }
    /// Which of its parent's children it is.
    constexpr std::uint32_t branch() const { return (index - 1) % tree_arity; }
    constexpr std::uint32_t child(std::uint32_t branch) const {
        return index * tree_arity + 1 + branch;
    }
    /// Numbers the parent 0 and the children from 1 on.
    constexpr std::uint32_t neighbour(std::uint32_t member) const {
        return member < index ? 0 : member - child(0) + 1;
    }
    constexpr std::uint32_t children() const {
        const std::uint64_t first = std::uint64_t{index} * tree_arity + 1;
        if (first >= members) return 0;
        const std::uint64_t left = members - first;
        return left < tree_arity ? static_cast<std::uint32_t>(left) : tree_arity;
    }
};

/// Levels of kicks from the deepest leaf to the root.
constexpr std::uint32_t tree_levels(std::uint32_t members) {
    std::uint32_t levels = 0;
    for (std::uint32_t last = members - 1; last > 0; last = (last - 1) / tree_arity) ++levels;
    return levels;
}

}  // namespace hiroba::net::kick
