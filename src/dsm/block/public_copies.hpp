// SPDX-License-Identifier: BSD-3-Clause
// Role: the public copies: this node's, which peers read one-sidedly and which serve it as twins,
// and those of peers.
// Invariant: a copy and its wts are published together (version odd while they change) and the wts
// never falls. Only a thread that holds the block's latch publishes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "dsm/block/block_table.hpp"
#include "dsm/block/carried_lines.hpp"
#include "dsm/block/change_log.hpp"
#include "dsm/memory/merge.hpp"
#include "gas/gas.hpp"

namespace hiroba::dsm {

/// What a public copy holds.
struct Version {
    Timestamp wts;
    Stamp stamp;
    LastChange change;  ///< who merged last
};

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
        std::byte* bytes() const noexcept { return to_; }
        /// The version that was read, if it was `node`'s copy, and one version.
        std::optional<Version> read_from(NodeId node) const noexcept;

    private:
        PublicCopies& copies_;
        BlockId block_;
        std::byte* to_;
        std::optional<NodeId> node_;
        std::uint64_t before_[4] = {};  ///< version, wts, stamp, last change
        std::uint64_t after_ = 0;       ///< version
    };

    /// @param data, records  on every node: the copies, and a BlockRecord for each block
    PublicCopies(gas::Segment data, gas::Segment records, NodeId self, std::size_t block_bytes)
        : data_(std::move(data)),
          records_(std::move(records)),
          self_(self),
          block_bytes_(block_bytes) {}
    void attach(std::uint32_t nodes) {
        data_.attach();
        records_.attach();
        all_mapped_ = true;
        for (std::uint32_t node = 0; node < nodes; ++node) all_mapped_ &= is_mapped(NodeId{node});
    }
    gas::Segment& records() noexcept { return records_; }
    /// Whether that node's memory is reached without its doing.
    bool is_mapped(NodeId node) const noexcept { return records_.reach({node, 0}, 0) != nullptr; }
    bool all_mapped() const noexcept { return all_mapped_; }

    /// What the room for another node's copy holds before that is read.
    enum class Room {
        empty,
        own_version,  ///< the bytes of this node's copy
    };
    struct Read {
        Version version;
        std::size_t bytes;  ///< that were read
    };
    /// Reads `node`'s copy into `to` (a block), all of one version. Where that node says what has
    /// changed since the version here, only those lines are read.
    Read read(NodeId node, BlockId block, std::byte* to, Room room) noexcept;

    /// This node's copy, if it is of `wts` and differs little from versions before it. With the
    /// block's latch.
    std::optional<CarriedLines> little_changed(BlockId block, Timestamp wts) noexcept;
    /// What has come of other nodes' copies along with their notices.
    CameLines& came() noexcept { return came_; }
    /// `node`'s copy of `wts` into `to` (a block), if it has come and its base is the version here.
    /// With the block's latch.
    /// @param base  the bytes of the version here; nullptr: those of this node's copy
    std::optional<Read> put_together(NodeId node, BlockId block, Timestamp wts,
                                     const std::byte* base, std::byte* to) noexcept;

    const std::byte* own(BlockId block) noexcept {
        return data_.local() + std::uint64_t{block} * block_bytes_;
    }
    /// The version of `node`'s copy at this moment.
    Timestamp wts_of(NodeId node, BlockId block) noexcept;
    /// What came before another node's copy, at this moment.
    Stamp stamp_of(NodeId node, BlockId block) noexcept;
    /// Eight bytes of `node`'s copy at this moment. @param at  a multiple of 8
    std::uint64_t word_of(NodeId node, BlockId block, std::size_t at) noexcept;
    /// As wts_of(), to be made together with other accesses.
    gas::Segment::Access look_at_wts(BlockId block, std::uint64_t& wts) noexcept {
        return gas::Segment::Access::get(
            records_, std::uint64_t{block} * sizeof(BlockRecord) + offsetof(BlockRecord, copy_wts),
            std::as_writable_bytes(std::span{&wts, 1}));
    }
    Timestamp own_wts(BlockId block) noexcept { return Timestamp{record(block).copy_wts}; }
    Stamp own_stamp(BlockId block) noexcept { return Stamp::from_raw(record(block).copy_stamp); }
    LastChange own_change(BlockId block) noexcept {
        return LastChange::decode(record(block).copy_change);
    }
    /// What another node's copy held that a merge has met.
    struct Met {
        Timestamp wts;
        Lines changed;  ///< the lines in which the merged bytes differ from it
    };
    /// Replaces this node's copy.
    void publish(BlockId block, const std::byte* from, Version version,
                 std::optional<Met> met = {}) noexcept;
    /// As publish(), but for the bytes: fill() brings them before any node may read them.
    void adopt(BlockId block, Version version) noexcept;
    void fill(BlockId block, const std::byte* from) noexcept;
    /// As publish(), of bytes that the program may be writing: lines that are equal stay untouched.
    /// @param noted  as copy_changes() has it
    void publish_changes(BlockId block, const std::byte* live, Version version,
                         std::uint64_t* noted) noexcept;
    /// Gives whole blocks of it back to the machine: they read as zero, of the version they had.
    /// Another node may keep old bytes under the same version, so nobody reads fewer lines by it.
    void discard(BlockId first, std::size_t count) noexcept;
    /// Replaces `bytes` bytes of it at `at`.
    void publish_part(BlockId block, std::size_t at, const std::byte* from, std::size_t bytes,
                      Version version) noexcept;

private:
    /// read(), of a node whose memory is not mapped here.
    Read read_far(NodeId node, BlockId block, std::byte* to) noexcept;
    template <class Change>
    void change_own(BlockId block, Version version, std::optional<Met> met,
                    Change&& change) noexcept;
    Lines changed_since(NodeId node, BlockId block, Timestamp version) noexcept;
    /// Calls visit(at, bytes) for each run of the lines, of a block.
    template <class Visit>
    void for_runs(Lines lines, Visit&& visit) const noexcept;
    friend class NodeView;
    BlockRecord& record(BlockId block) noexcept {
        return reinterpret_cast<BlockRecord*>(records_.local())[block];
    }

    gas::Segment data_, records_;
    NodeId self_;
    std::size_t block_bytes_;
    bool all_mapped_ = false;
    CameLines came_;
};

}  // namespace hiroba::dsm
