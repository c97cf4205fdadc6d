// SPDX-License-Identifier: BSD-3-Clause
// Role: the word by which a block's lock is found and queued for (docs/protocol.md#lock).
// Invariant: exactly one node of a block is unlocked, or one chain of locked nodes ends in the
// holder; a link of a node that is neither leads towards them. A busy word's node number is its
// *successor*, not a hint: only link words may ever be shortened.
// Source: the paper, section 3.2 and listing 1.
#pragma once

#include <cstdint>

#include "base/ids.hpp"

namespace hiroba::dsm {

/// One node's word for one block. All-zero memory is a link to the block's initial home, or, at
/// that home, an unlocked word: untouched metadata costs nothing.
class LinkWord {
public:
    enum class Kind : std::uint8_t { untouched = 0, unlocked, locked, locked_with_successor, link };

    constexpr LinkWord() = default;
    static constexpr LinkWord from_raw(std::uint64_t raw) { return LinkWord{raw}; }
    static constexpr LinkWord unlocked() { return make(Kind::unlocked, NodeId{}); }
    static constexpr LinkWord locked() { return make(Kind::locked, NodeId{}); }
    static constexpr LinkWord locked_with_successor(NodeId next) {
        return make(Kind::locked_with_successor, next);
    }
    static constexpr LinkWord link(NodeId node) { return make(Kind::link, node); }

    constexpr std::uint64_t raw() const { return raw_; }
    constexpr bool operator==(const LinkWord&) const = default;

    /// What the word means at node `at` for a block first held by `initial_home`.
    constexpr Kind kind(NodeId at, NodeId initial_home) const {
        const Kind stored = static_cast<Kind>(raw_ & 0xff);
        if (stored != Kind::untouched) return stored;
        return at == initial_home ? Kind::unlocked : Kind::link;
    }
    /// Link target or successor.
    constexpr NodeId node(NodeId initial_home) const {
        if (raw_ == 0) return initial_home;
        return NodeId{static_cast<std::uint32_t>(raw_ >> 8)};
    }

private:
    constexpr explicit LinkWord(std::uint64_t raw) : raw_(raw) {}
    static constexpr LinkWord make(Kind kind, NodeId node) {
        return LinkWord{static_cast<std::uint64_t>(kind) | std::uint64_t{node.value} << 8};
    }
    std::uint64_t raw_ = 0;
};

/// What a requester does on seeing a node's word on its way to the lock.
struct Chase {
    enum class Do : std::uint8_t {
        take,    ///< CAS the word to LINK(me): the lock is mine, read the token there
        queue,   ///< CAS the word to LOCKED + me: the holder will hand over
        follow,  ///< go on to `next`
    };
    Do what;
    NodeId next;
};

/// One step of the chase at `at`; pure, so that tests can try every interleaving.
constexpr Chase chase(LinkWord word, NodeId at, NodeId initial_home) {
    switch (word.kind(at, initial_home)) {
        case LinkWord::Kind::unlocked: return {Chase::Do::take, {}};
        case LinkWord::Kind::locked: return {Chase::Do::queue, {}};
        case LinkWord::Kind::untouched:
        case LinkWord::Kind::locked_with_successor:
        case LinkWord::Kind::link: break;
    }
    return {Chase::Do::follow, word.node(initial_home)};
}

}  // namespace hiroba::dsm
