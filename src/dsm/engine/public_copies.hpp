// SPDX-License-Identifier: BSD-3-Clause
// Role: the public copies: this node's, which peers read one-sidedly and which serve it as twins,
// and those of peers.
// Invariant: a copy and its wts are published together (version odd while they change) and the wts
// never falls. Only a thread that holds the block's latch publishes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dsm/engine/block_table.hpp"
#include "dsm/engine/change_log.hpp"
#include "gas/gas.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class PublicCopies {
public:
    /// The accesses that read one copy, all of one version if nothing was published meanwhile.
    class Reading {
    public:
        /// @param to  a block, not the program's memory
        Reading(PublicCopies& copies, BlockId block, std::byte* to) noexcept
            : copies_(copies), block_(block), to_(to) {}
        static constexpr std::size_t accesses = 3;
        /// To be made in this order, at the node that is then said with made_at().
        std::array<gas::Segment::Access, accesses> list() noexcept;
        void made_at(NodeId node) noexcept { node_ = node; }
        /// The wts of what was read, if that was `node`'s copy, and one version.
        std::optional<Timestamp> read_from(NodeId node) const noexcept;
        /// Of what was read; only where read_from() has told of a wts.
        LastChange last_change() const noexcept { return LastChange::decode(before_[2]); }

    private:
        PublicCopies& copies_;
        BlockId block_;
        std::byte* to_;
        std::optional<NodeId> node_;
        std::uint64_t before_[3] = {};  ///< version, wts, last change
        std::uint64_t after_ = 0;       ///< version
    };

    PublicCopies(gas::Segment& data, gas::Segment& records, NodeId self, std::size_t block_bytes)
        : data_(data), records_(records), self_(self), block_bytes_(block_bytes) {}

    /// Reads `node`'s copy into `to` (a block), all of one version; returns its wts.
    Timestamp read(NodeId node, BlockId block, std::byte* to, LastChange& last_change) noexcept;

    const std::byte* own(BlockId block) noexcept {
        return data_.local() + std::uint64_t{block} * block_bytes_;
    }
    /// The version of `node`'s copy at this moment.
    Timestamp wts_of(NodeId node, BlockId block) noexcept;
    Timestamp own_wts(BlockId block) noexcept { return Timestamp{record(block).copy_wts}; }
    LastChange own_change(BlockId block) noexcept {
        return LastChange::decode(record(block).copy_change);
    }
    /// Replaces this node's copy.
    void publish(BlockId block, const std::byte* from, Timestamp wts, LastChange last) noexcept;
    /// As publish(), of bytes that the program may be writing: lines that are equal stay untouched.
    /// @param noted  as copy_changes() has it
    void publish_changes(BlockId block, const std::byte* live, Timestamp wts, LastChange last,
                         std::uint64_t* noted) noexcept;
    /// Replaces `bytes` bytes of it at `at`.
    void publish_part(BlockId block, std::size_t at, const std::byte* from, std::size_t bytes,
                      Timestamp wts, LastChange last) noexcept;

private:
    /// read(), of a node whose memory is not mapped here.
    Timestamp read_far(NodeId node, BlockId block, std::byte* to, LastChange& last) noexcept;
    template <class Change>
    void change_own(BlockId block, Timestamp wts, LastChange last, Change&& change) noexcept;
    BlockRecord& record(BlockId block) noexcept {
        return reinterpret_cast<BlockRecord*>(records_.local())[block];
    }
    gas::Segment& data_;
    gas::Segment& records_;
    NodeId self_;
    std::size_t block_bytes_;
};

}  // namespace hiroba::dsm
