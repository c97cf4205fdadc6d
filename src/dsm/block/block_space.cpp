// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/block_space.hpp"

#include <bit>
#include <utility>

namespace hiroba::dsm {

BlockSpace::BlockSpace(const AddressMap& map, PrivateMemory memory, NodeId self)
    : map_(map),
      memory_(std::move(memory)),
      block_bytes_(map.shape().block_bytes),
      block_shift_(static_cast<unsigned>(std::countr_zero(block_bytes_))) {
    const std::uint32_t threads = map.shape().threads_per_node;
    const AddressRange first = map.stack_slice(self.value * threads);
    const AddressRange last = map.stack_slice(self.value * threads + threads - 1);
    pinned_begin_ = *map.offset_of(first.address);
    pinned_end_ = *map.offset_of(last.end() - 1) + 1;
}

// The first block of each thread's slice.
bool BlockSpace::is_stack_guard(std::uint64_t offset) const noexcept {
    const SpaceShape& shape = map_.shape();
    const std::uint64_t threads = std::uint64_t{shape.nodes} * shape.threads_per_node;
    return offset < threads * shape.stack_bytes && offset % shape.stack_bytes < block_bytes_;
}

}  // namespace hiroba::dsm
