// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/lock_cells.hpp"

#include <algorithm>

namespace hiroba::dsm {

namespace {

constexpr std::uint32_t cells_per_node = 1u << 18;
constexpr std::uint32_t slots_of_all = cells_per_node / 2;  // so there is always a cell
constexpr std::uint32_t slots_max = 1u << 16;
constexpr std::uint32_t window = 16;  // of slots that a key may have
constexpr std::uint64_t no_slot = ~0ull;
constexpr std::size_t line = cache_line_bytes;

// Words of a slot. Keys are stored plus one: 0 is an unbound slot.
constexpr std::size_t key_at = 0, tail_at = 8;

std::size_t stride_of(const SharedMemory& memory) {
    return round_up(memory.news_bytes_max(), line);
}

std::uint32_t slots_per_node(std::uint32_t nodes) {
    return std::clamp(slots_of_all / nodes, 1u, slots_max);
}
std::size_t slot_bytes(std::uint32_t slots) { return (std::size_t{slots} + window - 1) * line; }

constexpr std::uint64_t hash_of(std::uint64_t key) { return (key + 1) * 0x9E37'79B9'7F4A'7C15u; }

}  // namespace

std::size_t LockCells::segment_bytes(const SharedMemory& memory, std::uint32_t nodes) {
    return slot_bytes(slots_per_node(nodes)) +
           cells_per_node * (sizeof(Shared) + stride_of(memory));
}

LockCells::LockCells(const net::Endpoint& endpoint, const SharedMemory& memory,
                     gas::Segment segment)
    : self_(endpoint.self()),
      nodes_(endpoint.nodes()),
      slots_(slots_per_node(nodes_)),
      segment_(std::move(segment)),
      cells_at_(slot_bytes(slots_)),
      news_stride_(stride_of(memory)),
      news_at_(cells_at_ + cells_per_node * sizeof(Shared)),
      own_(cells_per_node),
      bound_(std::size_t{nodes_} * (slots_ + window - 1)) {
    static_assert(sizeof(Shared) == line && sizeof(Own) == line);
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
}

void LockCells::attach() {
    segment_.attach();
    // Zeroed memory is what a Shared is at first.
    shared_ = reinterpret_cast<Shared*>(segment_.local() + cells_at_);
}

bool LockCells::bind(std::uint64_t key, std::uint32_t* index) noexcept {
    if (find(key, index)) return true;
    const std::uint64_t slot = find_slot(key);
    if (slot == no_slot) return false;
    // Another thread may bind it meanwhile, or another key here.
    for (;; *index = (*index + 1) % cells_per_node) {
        std::uint64_t bound = 0;
        if (own_[*index].key.compare_exchange_strong(bound, key + 1)) {
            own_[*index].slot.store(slot + 1, std::memory_order_relaxed);
            return true;
        }
        if (bound == key + 1) return true;
    }
}

// There are more cells than keys with a slot.
bool LockCells::find(std::uint64_t key, std::uint32_t* index) noexcept {
    *index = static_cast<std::uint32_t>(hash_of(key) >> 24) % cells_per_node;
    for (;; *index = (*index + 1) % cells_per_node) {
        // Relaxed: a cell is all zero before it has a key, and needs nothing else.
        const std::uint64_t bound = own_[*index].key.load(std::memory_order_relaxed);
        if (bound == key + 1) return true;
        if (bound == 0) return false;
    }
}

std::uint64_t LockCells::find_slot(std::uint64_t key) noexcept {
    const std::uint64_t hash = hash_of(key);
    const NodeId node{static_cast<std::uint32_t>((hash >> 40) % nodes_)};
    const std::uint64_t first = static_cast<std::uint32_t>(hash >> 20) % slots_;
    for (std::uint64_t index = first; index < first + window; ++index) {
        std::atomic<std::uint64_t>& seen =
            bound_[std::uint64_t{node.value} * (slots_ + window - 1) + index];
        // Relaxed: it says nothing but itself, and is bound for good.
        std::uint64_t bound = seen.load(std::memory_order_relaxed);
        if (bound == 0) {
            const gas::GlobalAddress at{node, index * line + key_at};
            bound = segment_.load(at);
            if (bound == 0) bound = segment_.compare_swap(at, 0, key + 1);
            if (bound == 0) bound = key + 1;
            seen.store(bound, std::memory_order_relaxed);
        }
        if (bound == key + 1) return std::uint64_t{node.value} << 32 | index;
    }
    return no_slot;
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

gas::GlobalAddress LockCells::at(LockCell cell, Word word) const noexcept {
    return {cell.node(), cells_at_ + cell.index() * sizeof(Shared) + word};
}

}  // namespace hiroba::dsm
