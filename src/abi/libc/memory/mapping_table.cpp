// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/memory/mapping_table.hpp"

#include <algorithm>

namespace hiroba::abi {

MappingTable::Blocks::const_iterator MappingTable::find(std::uintptr_t address) const {
    auto next = blocks_.upper_bound(address);
    if (next == blocks_.begin()) return blocks_.end();
    --next;
    return address - next->first < next->second.bytes ? next : blocks_.end();
}

// Takes `part` out of the extents; returns how many bytes of it were mapped.
std::size_t MappingTable::cut_extents(dsm::AddressRange part) {
    std::size_t cut = 0;
    auto at = extents_.upper_bound(part.address);
    if (at != extents_.begin()) --at;
    while (at != extents_.end() && at->first < part.end()) {
        const std::uintptr_t begin = at->first;
        const std::uintptr_t end = begin + at->second;
        if (end <= part.address) {
            ++at;
            continue;
        }
        at = extents_.erase(at);
        if (begin < part.address) extents_[begin] = part.address - begin;
        if (end > part.end()) extents_[part.end()] = end - part.end();
        cut += std::min(end, part.end()) - std::max(begin, part.address);
    }
    return cut;
}

void MappingTable::add(dsm::AddressRange block, bool shows_file, bool is_reserved) {
    cut_extents(block);
    // A block freed on another node and handed out anew, maybe in another size.
    for (auto old = find(block.address); old != blocks_.end(); old = find(block.address)) {
        blocks_.erase(old);
    }
    blocks_.erase(blocks_.lower_bound(block.address), blocks_.lower_bound(block.end()));
    blocks_[block.address] = {block.bytes, block.bytes, shows_file, is_reserved};
    extents_[block.address] = block.bytes;
}

bool MappingTable::add_part(dsm::AddressRange part) {
    const auto found = find(part.address);
    if (found == blocks_.end() || part.end() > found->first + found->second.bytes) return false;
    blocks_[found->first].mapped_bytes += part.bytes - cut_extents(part);
    extents_[part.address] = part.bytes;
    return true;
}

std::vector<MappingTable::Empty> MappingTable::remove(dsm::AddressRange part) {
    std::vector<Empty> empty;
    auto at = blocks_.upper_bound(part.address);
    if (at != blocks_.begin()) --at;
    while (at != blocks_.end() && at->first < part.end()) {
        const std::uintptr_t begin = std::max(at->first, part.address);
        const std::uintptr_t end = std::min(at->first + at->second.bytes, part.end());
        if (begin < end) at->second.mapped_bytes -= cut_extents({begin, end - begin});
        if (at->second.mapped_bytes == 0) {
            empty.push_back({at->first, at->second.is_reserved});
            at = blocks_.erase(at);
        } else {
            ++at;
        }
    }
    return empty;
}

void MappingTable::set_bytes(std::uintptr_t address, std::size_t bytes) {
    Block& block = blocks_[address];
    if (bytes < block.bytes) {
        block.mapped_bytes -= cut_extents({address + bytes, block.bytes - bytes});
        block.bytes = bytes;
        return;
    }
    const dsm::AddressRange more{address + block.bytes, bytes - block.bytes};
    block.bytes = bytes;
    if (more.bytes > 0) add_part(more);
}

std::optional<dsm::AddressRange> MappingTable::block_of(std::uintptr_t address) const {
    const auto found = find(address);
    if (found == blocks_.end()) return std::nullopt;
    return dsm::AddressRange{found->first, found->second.bytes};
}

bool MappingTable::shows_file(std::uintptr_t address) const {
    const auto found = find(address);
    return found != blocks_.end() && found->second.shows_file;
}

bool MappingTable::is_reserved(std::uintptr_t address) const {
    const auto found = find(address);
    return found != blocks_.end() && found->second.is_reserved;
}

bool MappingTable::is_whole(std::uintptr_t address) const {
    const auto found = find(address);
    return found != blocks_.end() && found->second.mapped_bytes == found->second.bytes;
}

}  // namespace hiroba::abi
