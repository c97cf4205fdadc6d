// SPDX-License-Identifier: BSD-3-Clause
// Role: where the program's addresses lie in the global offset space, and which node is the first
// home of a block.
// Invariant: the same on every node. Offset 0 is the start of the main range (stacks, early arena,
// heap arenas); the images of the executable and its libraries follow, each on a block boundary.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace hiroba::dsm {

/// Part of the program's address space; both in bytes, whole pages.
struct AddressRange {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    std::uintptr_t end() const noexcept { return address + bytes; }
    bool contains(std::uintptr_t a) const noexcept { return a - address < bytes; }
};

/// The sizes that fix the layout; equal on every node.
struct SpaceShape {
    std::uint32_t nodes = 1;
    std::uint32_t threads_per_node = 1;  ///< the most a node may have; each has a stack
    std::size_t stack_bytes = std::size_t{64}
                              << 20;  ///< one thread's stack and TLS, guard included
    std::size_t early_bytes = std::size_t{64} << 20;  ///< allocations made before take-over
    std::size_t heap_bytes = std::size_t{16} << 30;   ///< one node's heap arena
    std::size_t block_bytes = page_bytes;             ///< power of two, at least a page
};

/// Translates between addresses and global offsets. It only grows: a library that is loaded later
/// adds its images while others translate.
/// Thread: any; async-signal-safe. add_image(): one at a time.
class AddressMap {
public:
    /// Above the shadow of the address sanitizer, so that its tests can map the range too.
    static constexpr std::uintptr_t main_base = 0x1100'0000'0000;
    static constexpr std::size_t images_max = 2048;
    static constexpr std::size_t image_space_bytes = std::size_t{16} << 30;

    /// Stack, early and heap sizes are rounded up to whole blocks; shape() returns the result.
    explicit AddressMap(const SpaceShape& shape);
    AddressMap(const AddressMap&) = delete;
    AddressMap& operator=(const AddressMap&) = delete;

    /// Adds one writable load segment (page-aligned). Same order and ranges on every node.
    /// Refuses more than images_max, or more than image_space_bytes in all.
    Result<void> add_image(AddressRange image);

    /// Takes `range` of the main range, memory that no node has touched, out of global memory for
    /// good: the program has mapped a file there. False: not whole blocks, or too many of them.
    bool leave_out(AddressRange range) noexcept;
    /// Whether a part of `range` was left out.
    bool is_left_out(AddressRange range) const noexcept;

    const SpaceShape& shape() const noexcept { return shape_; }
    AddressRange main_range() const noexcept { return {main_base, main_bytes_}; }
    AddressRange stack_slice(std::uint32_t global_thread) const noexcept;
    AddressRange early_arena() const noexcept;
    AddressRange heap_arena(NodeId node) const noexcept;
    std::size_t images() const noexcept { return order().by_address.size(); }
    AddressRange image(std::size_t index) const noexcept { return images_[index].range; }

    /// Size of the offset space in bytes, including room for images yet to be added.
    std::uint64_t space_bytes() const noexcept;
    std::optional<std::uint64_t> offset_of(std::uintptr_t address) const noexcept {
        if (address - main_base < main_bytes_) {
            // Relaxed: who was told of a mapping has been told of the hole.
            const bool whole = hole_count_.load(std::memory_order_relaxed) == 0;
            if (whole || !is_left_out({address, 1})) return address - main_base;
            return std::nullopt;
        }
        return offset_in_image(address);
    }
    /// 0 when nothing is mapped at the offset (padding behind an image).
    std::uintptr_t address_of(std::uint64_t offset) const noexcept;
    /// Bytes from `offset` to the end of the extent it lies in (at most `bytes_max`).
    std::size_t extent_left(std::uint64_t offset, std::size_t bytes_max) const noexcept;
    /// The node that holds the block at `offset` before any thread has written it.
    NodeId initial_home(std::uint64_t offset) const noexcept;

private:
    struct Image {
        AddressRange range;
        std::uint64_t offset = 0;
    };
    /// What readers see of the images; never changed once published.
    struct Order {
        std::vector<std::uint16_t> by_address;  ///< indices, ascending by address
    };
    static const Order no_images;
    const Order& order() const noexcept {
        // Acquire, pairs with the release in add_image(): the images it counts are complete.
        return *order_.load(std::memory_order_acquire);
    }
    const Image* image_at(std::uint64_t offset) const noexcept;
    std::optional<std::uint64_t> offset_in_image(std::uintptr_t address) const noexcept {
        const Order& order = this->order();
        std::size_t first = 0,
                    end = order.by_address.size();  // the last that begins at or before the address
        while (first < end) {
            const std::size_t middle = (first + end) / 2;
            if (images_[order.by_address[middle]].range.address <= address)
                first = middle + 1;
            else
                end = middle;
        }
        if (first == 0) return std::nullopt;
        const Image& image = images_[order.by_address[first - 1]];
        if (address - image.range.address >= image.range.bytes) return std::nullopt;
        return image.offset + (address - image.range.address);
    }

    SpaceShape shape_;
    std::size_t main_bytes_ = 0;
    std::array<Image, images_max> images_{};            ///< in ascending order of offset
    std::vector<std::unique_ptr<const Order>> orders_;  ///< all there ever were: readers stay
    std::atomic<const Order*> order_{&no_images};
    std::uint64_t image_end_ = 0;
    static constexpr std::size_t holes_max = 256;
    std::array<AddressRange, holes_max> holes_{};
    std::atomic<std::size_t> hole_count_{0};
};

}  // namespace hiroba::dsm
