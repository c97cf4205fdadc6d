// SPDX-License-Identifier: BSD-3-Clause
#include "acp/heap_blocks.hpp"

#include <algorithm>

namespace hiroba::acp {

std::uint64_t HeapBlocks::rounded(std::uint64_t bytes) noexcept {
    const std::uint64_t wanted = std::max(bytes, std::uint64_t{1});
    // What would wrap around fits nowhere as it is.
    if (wanted > ~std::uint64_t{0} - alignment) return ~std::uint64_t{0};
    return (wanted + alignment - 1) / alignment * alignment;
}

void HeapBlocks::add(std::uint64_t first, std::uint64_t bytes) {
    const std::uint64_t begin = (first + alignment - 1) / alignment * alignment;
    const std::uint64_t end = (first + bytes) / alignment * alignment;
    if (begin < end) insert(begin, end - begin);
}

std::uint64_t HeapBlocks::take(std::uint64_t bytes) {
    const std::uint64_t wanted = rounded(bytes);
    const auto fitting = by_size_.lower_bound({wanted, 0});
    if (fitting == by_size_.end()) return 0;
    const auto [room, address] = *fitting;
    remove(free_.find(address));
    if (room != wanted) insert(address + wanted, room - wanted);
    taken_.emplace(address, wanted);
    taken_bytes_ += wanted;
    return address;
}

bool HeapBlocks::give(std::uint64_t address) {
    const auto block = taken_.find(address);
    if (block == taken_.end()) return false;
    const std::uint64_t bytes = block->second;
    taken_.erase(block);
    taken_bytes_ -= bytes;
    insert(address, bytes);
    return true;
}

/// Adds a free part; those that adjoin it become one with it.
void HeapBlocks::insert(std::uint64_t first, std::uint64_t bytes) {
    auto after = free_.lower_bound(first);
    if (after != free_.end() && after->first == first + bytes) {
        bytes += after->second;
        remove(after);
        after = free_.lower_bound(first);
    }
    if (after != free_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == first) {
            first = before->first;
            bytes += before->second;
            remove(before);
        }
    }
    free_.emplace(first, bytes);
    by_size_.emplace(bytes, first);
}

void HeapBlocks::remove(std::map<std::uint64_t, std::uint64_t>::iterator part) {
    by_size_.erase({part->second, part->first});
    free_.erase(part);
}

}  // namespace hiroba::acp
