// SPDX-License-Identifier: BSD-3-Clause
// Role: whether any other node makes atomics while this one holds its own back. With more than two
// nodes the one that was let go on may itself wait for a third one.
// Invariant: a hint.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "net/net.hpp"

namespace hiroba::dsm {

/// Thread: its maker's. A look at another node may be a round trip, so each is at one node alone:
/// at the same one while that makes atomics, else at the next.
class OthersAtWork {
public:
    /// @param first  the node that was let go on; at most `watched_max` are looked at, from there
    OthersAtWork(NodeId self, NodeId first, unsigned nodes, std::uint64_t now) noexcept
        : self_(self),
          first_(first),
          nodes_(nodes),
          count_(std::min<std::size_t>(nodes - 1, watched_max)),
          seen_at_ns_(now) {}

    /// One look.
    /// @param activity_of  NewsBoard::activity_of
    /// @param idle_ns  without an atomic: a node has paused
    /// @returns false: none of those that were looked at has made one for so long
    template <class ActivityOf>
    bool look(std::uint64_t now, std::uint64_t idle_ns, ActivityOf&& activity_of) noexcept {
        Watched& watched = watched_[at_];
        const std::uint64_t word = activity_of(node_at(at_));
        const bool moved = watched.known && watched.word != word;
        watched = {word, true};
        if (moved || (word & 1) != 0) {
            seen_at_ns_ = now;
            return true;
        }
        at_ = (at_ + 1) % count_;
        return now - seen_at_ns_ < idle_ns;
    }

private:
    static constexpr std::size_t watched_max = 16;
    struct Watched {
        std::uint64_t word = 0;
        bool known = false;
    };

    // The nodes from first_ on, without this one.
    NodeId node_at(std::size_t index) const noexcept {
        const auto from_first = [&](std::size_t i) {
            return NodeId{static_cast<std::uint32_t>((first_.value + i) % nodes_)};
        };
        const std::size_t self_index = (self_.value + nodes_ - first_.value) % nodes_;
        return from_first(index < self_index ? index : index + 1);
    }

    NodeId self_, first_;
    unsigned nodes_;
    std::size_t count_, at_ = 0;
    std::uint64_t seen_at_ns_;
    std::array<Watched, watched_max> watched_{};
};

}  // namespace hiroba::dsm
