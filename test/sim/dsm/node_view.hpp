// SPDX-License-Identifier: BSD-3-Clause
// Role: a node of the shared memory as tests see it between two steps: its blocks, for checkers of
// their invariants; all that its next steps depend on, for explorers; and how often it took each
// row of the block protocol. Invariant: looks, and changes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "dsm/engine/node.hpp"

namespace hiroba::dsm {

/// Thread: any, where nothing else is said.
class NodeView {
public:
    explicit NodeView(Node& node) noexcept : node_(node) {}

    /// How often each row was taken there, at least.
    using RowCounts = std::array<std::array<std::uint64_t, block_events>, block_states>;
    RowCounts rows() const noexcept;

    struct Block {
        BlockState state;
        Timestamp rts;
        Timestamp expired_to;   ///< leases before it have been looked at
        bool moved;             ///< the block is marked: its lock has left this node
        bool acquiring;         ///< a thread here is in the middle of an acquire,
        bool releasing;         ///< or of a release: what it has collected is not merged yet
        bool may_be_shown;      ///< what came before the public copy's bytes has been acquired
        const std::byte* twin;  ///< what of the private copy differs from it was written here
        const BlockRecord& record;
        const std::byte* private_bytes;
        const std::byte* public_bytes;
    };
    /// Nothing while a thread is at work on the block. Valid until any thread goes on.
    std::optional<Block> look_at(BlockId block) const noexcept;

    /// Shows `visit` all that decides what the node does next with `blocks`, for explorers; of
    /// each the first `block_bytes`: no thread uses the others. Thread: while no other runs.
    void show_state(std::span<const BlockId> blocks, std::size_t block_bytes,
                    void (*visit)(void* context, Bytes part), void* context) const noexcept;

private:
    class Shown;
    void show_block(Shown& shown, BlockId block, std::size_t block_bytes) const noexcept;
    void show_news(Shown& shown) const noexcept;
    void show_races(Shown& shown) const noexcept;
    void show_release(Shown& shown) const noexcept;
    void show_acquire(Shown& shown) const noexcept;
    void show_others(Shown& shown) const noexcept;

    Node& node_;
};

}  // namespace hiroba::dsm
