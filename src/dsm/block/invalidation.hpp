// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks that are about to become inaccessible together: those next to each other are
// unmapped in one call. Invariant: the latches of all are held from add() until after clear().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dsm/memory/address_map.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: the one with the acquire role. Allocates nothing once it is made.
class Invalidation {
public:
    static constexpr std::size_t blocks_max = 1024;

    Invalidation() {
        ranges_.reserve(blocks_max);
        blocks_.reserve(blocks_max);
    }
    bool is_empty() const noexcept { return blocks_.empty(); }
    /// Before another is added.
    bool is_full() const noexcept { return blocks_.size() == blocks_max; }
    /// @param range  where the program sees it; empty: it is inaccessible already
    void add(BlockId block, AddressRange range) noexcept {
        blocks_.push_back(block);
        if (range.bytes == 0) return;
        if (!ranges_.empty() && ranges_.back().end() == range.address) {
            ranges_.back().bytes += range.bytes;
        } else {
            ranges_.push_back(range);
        }
    }
    std::span<const AddressRange> ranges() const noexcept { return ranges_; }
    std::span<const BlockId> blocks() const noexcept { return blocks_; }
    void clear() noexcept {
        ranges_.clear();
        blocks_.clear();
    }

private:
    std::vector<AddressRange> ranges_;
    std::vector<BlockId> blocks_;
};

}  // namespace hiroba::dsm
