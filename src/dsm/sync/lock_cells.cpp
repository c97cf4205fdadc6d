// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/lock_cells.hpp"

#include "base/fatal.hpp"

namespace hiroba::dsm {

namespace {

constexpr std::uint32_t slots_per_node = 1u << 16;
constexpr std::uint32_t cells_per_node = 1u << 18;
constexpr std::size_t line = cache_line_bytes;
constexpr std::size_t cells_at = slots_per_node * line;

// Words of a slot. Keys are stored plus one: 0 is an unbound slot.
constexpr std::size_t key_at = 0, tail_at = 8;

std::size_t stride_of(const SharedMemory& memory) {
    return round_up(memory.news_bytes_max(), line);
}

constexpr std::uint64_t hash_of(std::uint64_t key) { return (key + 1) * 0x9E37'79B9'7F4A'7C15u; }

}  // namespace

std::size_t LockCells::segment_bytes(const SharedMemory& memory) {
    return cells_at + cells_per_node * (sizeof(Shared) + stride_of(memory));
}

LockCells::LockCells(const net::Endpoint& endpoint, const SharedMemory& memory,
                     gas::Segment segment)
    : self_(endpoint.self()),
      nodes_(endpoint.nodes()),
      segment_(std::move(segment)),
      news_stride_(stride_of(memory)),
      news_at_(cells_at + cells_per_node * sizeof(Shared)),
      own_(cells_per_node) {
    static_assert(sizeof(Shared) == line && sizeof(Own) == line);
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
}

void LockCells::attach() {
    segment_.attach();
    // Zeroed memory is what a Shared is at first.
    shared_ = reinterpret_cast<Shared*>(segment_.local() + cells_at);
}

std::uint32_t LockCells::bind(std::uint64_t key) noexcept {
    auto index = static_cast<std::uint32_t>(hash_of(key) >> 24) % cells_per_node;
    for (std::uint32_t tries = 0; tries < cells_per_node; ++tries) {
        // Relaxed: a cell is all zero before it has a key, and needs nothing else.
        std::uint64_t bound = own_[index].key.load(std::memory_order_relaxed);
        if (bound == key + 1) return index;
        if (bound == 0 && own_[index].key.compare_exchange_strong(bound, key + 1)) return index;
        if (bound == key + 1) return index;
        index = (index + 1) % cells_per_node;
    }
    die(exit_environment, "more than %u locks used on one node; the program may use fewer",
        cells_per_node);
}

bool LockCells::find(std::uint64_t key, std::uint32_t* index) noexcept {
    *index = static_cast<std::uint32_t>(hash_of(key) >> 24) % cells_per_node;
    for (std::uint32_t tries = 0; tries < cells_per_node; ++tries) {
        const std::uint64_t bound = own_[*index].key.load(std::memory_order_relaxed);  // as bind()
        if (bound == key + 1) return true;
        if (bound == 0) return false;
        *index = (*index + 1) % cells_per_node;
    }
    return false;
}

std::uint64_t LockCells::find_slot(std::uint64_t key) noexcept {
    const std::uint64_t hash = hash_of(key);
    const NodeId node{static_cast<std::uint32_t>((hash >> 40) % nodes_)};
    std::uint64_t index = static_cast<std::uint32_t>(hash >> 20) % slots_per_node;
    for (std::uint32_t tries = 0; tries < slots_per_node; ++tries) {
        const gas::GlobalAddress at{node, index * line + key_at};
        std::uint64_t bound = segment_.load(at);
        if (bound == 0) bound = segment_.compare_swap(at, 0, key + 1);
        if (bound == 0 || bound == key + 1) return std::uint64_t{node.value} << 32 | index;
        index = (index + 1) % slots_per_node;
    }
    die(exit_environment, "more than %u locks hash to node %u; the program may use fewer",
        slots_per_node, node.value);
}

// Two threads that look at once find the same.
gas::GlobalAddress LockCells::tail_of(std::uint32_t index) noexcept {
    std::atomic<std::uint64_t>& known = own_[index].slot;
    std::uint64_t slot = known.load(std::memory_order_relaxed);
    if (slot == 0) {
        slot = find_slot(own_[index].key.load(std::memory_order_relaxed) - 1) + 1;
        known.store(slot, std::memory_order_relaxed);
    }
    --slot;
    return {NodeId{static_cast<std::uint32_t>(slot >> 32)},
            static_cast<std::uint32_t>(slot) * line + tail_at};
}

gas::GlobalAddress LockCells::at(LockCell cell, Word word) noexcept {
    return {cell.node(), cells_at + cell.index() * sizeof(Shared) + word};
}

}  // namespace hiroba::dsm
