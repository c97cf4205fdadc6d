// SPDX-License-Identifier: BSD-3-Clause
// Role: which bytes of each block this node has changed lately, for whoever changes one of them
// later: a copy that was fetched does not tell whose bytes it holds (docs/protocol.md#unordered).
// Invariant: a block's entry changes only under the block's lock; its mask is of one epoch, the
// last in which this node merged the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dsm/engine/block_table.hpp"
#include "gas/gas.hpp"

namespace hiroba::dsm {

/// Who merged last into a copy, and when by its own count. All zero: nobody since the start.
struct LastChange {
    NodeId node;
    Epoch epoch = 0;

    static LastChange decode(std::uint64_t word) noexcept {
        return {NodeId{static_cast<std::uint32_t>(word >> epoch_bits)},
                word & ((std::uint64_t{1} << epoch_bits) - 1)};
    }
    std::uint64_t encode() const noexcept {
        return std::uint64_t{node.value} << epoch_bits | epoch;
    }

private:
    static constexpr unsigned epoch_bits = 44;
};

/// Thread: any; async-signal-safe where the provider completes inline.
class ChangeLog {
public:
    /// Per block: the epoch, then a word for each line of 64 bytes, one bit a byte.
    static std::size_t entry_bytes(std::size_t block_bytes) {
        return (sizeof(Epoch) + block_bytes / 8 + 63) / 64 * 64;
    }

    ChangeLog(gas::Segment& segment, std::size_t block_bytes)
        : segment_(segment), block_bytes_(block_bytes) {}

    std::size_t words() const noexcept { return block_bytes_ / 64; }

    /// Where what is merged into `block` in `epoch` is noted; with the block's lock.
    std::uint64_t* own(BlockId block, Epoch epoch) noexcept {
        std::byte* const entry =
            segment_.local() + std::uint64_t{block} * entry_bytes(block_bytes_);
        auto* const words_of_entry = reinterpret_cast<std::uint64_t*>(entry);
        if (words_of_entry[0] != epoch) {
            std::memset(words_of_entry + 1, 0, words() * sizeof(std::uint64_t));
            words_of_entry[0] = epoch;
        }
        return words_of_entry + 1;
    }
    /// This node's entry, its epoch first, as it stands.
    const std::uint64_t* shown(BlockId block) noexcept {
        return reinterpret_cast<std::uint64_t*>(segment_.local() +
                                                std::uint64_t{block} * entry_bytes(block_bytes_));
    }
    /// Reads `node`'s mask of `block` into `to` (words() words); returns its epoch. Whole with the
    /// block's lock, or where nobody merges the block.
    Epoch read(NodeId node, BlockId block, std::byte* to) noexcept {
        segment_.get({node, std::uint64_t{block} * entry_bytes(block_bytes_)},
                     {to, sizeof(Epoch) + words() * sizeof(std::uint64_t)});
        Epoch epoch;
        std::memcpy(&epoch, to, sizeof epoch);
        std::memmove(to, to + sizeof epoch, words() * sizeof(std::uint64_t));
        return epoch;
    }

private:
    gas::Segment& segment_;
    std::size_t block_bytes_;
};

}  // namespace hiroba::dsm
