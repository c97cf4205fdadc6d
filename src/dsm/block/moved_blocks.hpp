// SPDX-License-Identifier: BSD-3-Clause
// Role: the blocks of a node whose lock was taken away. A home's own copy has no lease that could
// end; instead whoever takes the lock marks the block at the node it takes it from, and that node's
// next acquire looks at what is marked (docs/protocol.md#renewal).
// Invariant: a mark is set after the lock has gone, and from the bit of the block upwards; it is
// taken from the top downwards. So a taker misses none that was complete when it began. A mark of a
// block that is still, or again, at home does no harm.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "dsm/protocol/signature.hpp"
#include "gas/gas.hpp"

namespace hiroba::dsm {

/// Three levels of bits: a block, 64 blocks, one of 64 parts of all. Thread: any;
/// async-signal-safe.
class MovedBlocks {
public:
    using Access = gas::Segment::Access;
    static constexpr std::size_t marks = 3;

    static Result<gas::Segment> allocate(net::Endpoint& endpoint, std::size_t blocks) {
        return gas::Segment::allocate(endpoint, Layout(blocks).bytes);
    }
    MovedBlocks(gas::Segment segment, std::size_t blocks, NodeId self)
        : segment_(std::move(segment)), layout_(blocks), self_(self) {}
    void attach() { segment_.attach(); }

    /// Marks `block` at `node`. After its lock has been taken from there.
    void mark(NodeId node, BlockId block) noexcept {
        for (const Access& one : accesses(block)) {
            const gas::GlobalAddress at{node, one.offset};
            // Set already: the node that set it has yet to be found by a taker, which then finds
            // what is below.
            if ((segment_.load(at) & one.value) == 0) segment_.fetch_or(at, one.value);
        }
    }
    /// The accesses of mark(), for a list of them, in this order.
    std::array<Access, marks> accesses(BlockId block) noexcept {
        const std::size_t word = block / 64, group = word / 64;
        return {Access::fetch_or(segment_, layout_.blocks_at + word * 8, bit(block)),
                Access::fetch_or(segment_, layout_.words_at + group * 8, bit(word)),
                Access::fetch_or(segment_, 0, bit(group / layout_.groups_a_part))};
    }

    /// Whether anything is marked at this node.
    bool any() noexcept { return segment_.load({self_, 0}) != 0; }
    /// Takes all marks of this node and calls visit(block) for each.
    template <class Visit>
    void take(Visit&& visit) noexcept {
        if (!any()) return;
        take_word(0, 0, [&](std::size_t part) { take_part(part, visit); });
    }
    /// Whether this node's `block` is marked, for checkers.
    bool is_marked(BlockId block) noexcept {
        return (here(layout_.blocks_at + std::size_t{block} / 64 * 8) & bit(block)) != 0;
    }
    /// The words that lead to `block`'s bit, its own last, for explorers. While no thread sets or
    /// takes any.
    std::array<std::uint64_t, marks> shown(BlockId block) noexcept {
        const std::size_t word = block / 64, group = word / 64;
        return {here(0), here(layout_.words_at + group * 8), here(layout_.blocks_at + word * 8)};
    }

private:
    struct Layout {
        explicit constexpr Layout(std::size_t blocks)
            : groups((blocks + 4095) / 4096),
              groups_a_part((groups + 63) / 64),
              blocks_at(words_at + groups * 8),
              bytes(blocks_at + groups * 64 * 8) {}
        std::size_t words_at = 64;  // `any` has a line of its own
        std::size_t groups;
        std::size_t groups_a_part;  // each bit of the first word is one of 64 parts
        std::size_t blocks_at;
        std::size_t bytes;
    };
    static constexpr std::uint64_t bit(std::size_t index) {
        return std::uint64_t{1} << (index % 64);
    }
    // Only to pass by what is zero; acquire, because what is above was taken before.
    std::uint64_t here(std::size_t offset) noexcept {
        auto* const word = reinterpret_cast<std::uint64_t*>(segment_.local() + offset);
        return std::atomic_ref(*word).load(std::memory_order_acquire);
    }
    template <class Visit>
    void take_part(std::size_t part, Visit&& visit) noexcept {
        const std::size_t first = part * layout_.groups_a_part;
        const std::size_t end = std::min(first + layout_.groups_a_part, layout_.groups);
        for (std::size_t group = first; group < end; ++group) {
            take_word(layout_.words_at, group, [&](std::size_t word) {
                take_word(layout_.blocks_at, word,
                          [&](std::size_t block) { visit(static_cast<BlockId>(block)); });
            });
        }
    }
    template <class Visit>
    void take_word(std::size_t level_at, std::size_t index, Visit&& visit) noexcept {
        const std::size_t offset = level_at + index * 8;
        if (here(offset) == 0) return;
        std::uint64_t bits = segment_.swap({self_, offset}, 0);
        for (; bits != 0; bits &= bits - 1) {
            visit(index * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
        }
    }

    gas::Segment segment_;
    Layout layout_;
    NodeId self_;
};

}  // namespace hiroba::dsm
