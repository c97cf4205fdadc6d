// SPDX-License-Identifier: BSD-3-Clause
// Role: where a block lies: its offset in the shared memory, this node's private copy of it, and
// the addresses at which the program sees it; and which blocks are stacks of this node's threads.
// Invariant: nothing here changes once the node is made, but that the map gets further images.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dsm/memory/address_map.hpp"
#include "dsm/memory/private_memory.hpp"
#include "dsm/protocol/signature.hpp"

namespace hiroba::dsm {

/// Thread: any; async-signal-safe.
class BlockSpace {
public:
    BlockSpace(const AddressMap& map, PrivateMemory memory, NodeId self);

    static std::size_t blocks_of(const AddressMap& map) {
        return map.space_bytes() / map.shape().block_bytes;
    }
    const AddressMap& map() const noexcept { return map_; }
    const PrivateMemory& memory() const noexcept { return memory_; }
    std::size_t block_bytes() const noexcept { return block_bytes_; }

    std::uint64_t offset_of(BlockId block) const noexcept {
        return std::uint64_t{block} << block_shift_;
    }
    BlockId block_at(std::uint64_t offset) const noexcept {
        return static_cast<BlockId>(offset >> block_shift_);
    }
    std::size_t offset_in_block(std::uint64_t offset) const noexcept {
        return offset & (block_bytes_ - 1);
    }
    std::byte* private_copy(BlockId block) const noexcept { return memory_.at(offset_of(block)); }
    /// The range has no address where nothing of the program lies, behind an image.
    AddressRange program_range(BlockId block) const noexcept {
        const std::uint64_t offset = offset_of(block);
        return {map_.address_of(offset), map_.extent_left(offset, block_bytes_)};
    }
    /// The aligned word that holds the byte at `offset`, as the program sees it just now.
    std::uint64_t word_at(std::uint64_t offset) const noexcept {
        return std::atomic_ref{*reinterpret_cast<std::uint64_t*>(memory_.at(offset & ~7ul))}.load(
            std::memory_order_relaxed);  // only compared
    }

    /// Whether it is on the stack of one of this node's threads, where the kernel writes too.
    bool is_pinned(std::uint64_t offset) const noexcept {
        return offset - pinned_begin_ < pinned_end_ - pinned_begin_;
    }
    /// Whether it is below the stack of a thread of any node.
    // Not inlined, so that test/cluster/switched_off.py can switch it off.
    [[gnu::noinline]] bool is_stack_guard(std::uint64_t offset) const noexcept;

    /// Visits the blocks of [address, +bytes) up to the end of the extent.
    template <class Visit>
    void for_blocks(const void* address, std::size_t bytes, Visit&& visit) const noexcept {
        const auto begin = reinterpret_cast<std::uintptr_t>(address);
        for (std::uintptr_t at = begin; at < begin + bytes;) {
            const auto offset = map_.offset_of(at);
            if (!offset) return;
            visit(block_at(*offset));
            at += block_bytes_ - offset_in_block(*offset);
        }
    }

private:
    const AddressMap& map_;
    PrivateMemory memory_;
    std::size_t block_bytes_;
    unsigned block_shift_;
    std::uint64_t pinned_begin_, pinned_end_;  ///< offsets of this node's stack slices
};

}  // namespace hiroba::dsm
