// SPDX-License-Identifier: BSD-3-Clause
// Role: memory for what the program's libraries allocate before the node is put together.
// Invariant: it lies at an address of its own that is the same on every node and becomes global at
// take-over (node 0's bytes win); so a block's size lies in front of it and is adopted with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// Hands out, never takes back: libraries keep nearly all of it for good. Thread: any, at once.
class EarlyArena {
public:
    /// Reserves the addresses `global` in this process, and makes `range`, a part of them, memory;
    /// ends the process when something lies there. Once.
    void open(dsm::AddressRange range, dsm::AddressRange global) noexcept;

    /// Zeroed; nullptr when full. `alignment` a power of two.
    void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
    bool owns(const void* address) const noexcept {
        return range_.contains(reinterpret_cast<std::uintptr_t>(address));
    }
    /// The usable bytes of a block of this arena.
    std::size_t usable_bytes(const void* block) const noexcept {
        return static_cast<const std::size_t*>(block)[-1];
    }
    dsm::AddressRange range() const noexcept { return range_; }
    /// The pages that hold blocks; none before open().
    dsm::AddressRange used() const noexcept {
        const std::uintptr_t next = next_.load(std::memory_order_relaxed);
        if (next == 0) return {};
        return {range_.address, round_up(next - range_.address, page_bytes)};
    }
    std::size_t bytes_free() const noexcept {
        return range_.end() - next_.load(std::memory_order_relaxed);
    }

private:
    dsm::AddressRange range_;
    std::atomic<std::uintptr_t> next_{0};
};

}  // namespace hiroba::abi
