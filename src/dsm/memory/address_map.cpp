// SPDX-License-Identifier: BSD-3-Clause
// Role: the layout of the global offset space (address_map.hpp), as arithmetic.
// Order of the main range: stack slices of all threads, early arena, heap arenas of all nodes.
// Invariant: every part starts on a block boundary, so no block holds bytes of two parts.
#include "dsm/memory/address_map.hpp"

#include <algorithm>
#include <cstdio>

#include "base/fatal.hpp"

namespace hiroba::dsm {
namespace {

SpaceShape on_block_boundaries(SpaceShape shape) {
    HIROBA_INVARIANT(
        shape.block_bytes >= page_bytes && (shape.block_bytes & (shape.block_bytes - 1)) == 0,
        "block_bytes is %lu", shape.block_bytes);
    HIROBA_INVARIANT(shape.nodes > 0 && shape.threads_per_node > 0, "%u nodes of %u threads",
                     shape.nodes, shape.threads_per_node);
    shape.stack_bytes = round_up(shape.stack_bytes, shape.block_bytes);
    shape.early_bytes = round_up(shape.early_bytes, shape.block_bytes);
    shape.heap_bytes = round_up(shape.heap_bytes, shape.block_bytes);
    return shape;
}

Error refused(const char* format, unsigned long first, unsigned long second) {
    char text[256];
    std::snprintf(text, sizeof text, format, first, second);
    return Error{ErrorKind::environment, text};
}

bool overlap(AddressRange a, AddressRange b) { return a.address < b.end() && b.address < a.end(); }

}  // namespace

constinit const AddressMap::Order AddressMap::no_images{};

AddressMap::AddressMap(const SpaceShape& shape)
    : shape_(on_block_boundaries(shape)),
      main_bytes_(shape_.stack_bytes * shape_.nodes * shape_.threads_per_node + shape_.early_bytes +
                  shape_.heap_bytes * shape_.nodes),
      image_end_(main_bytes_) {}

Result<void> AddressMap::add_image(AddressRange image) {
    if (image.bytes == 0 || image.address % page_bytes != 0 || image.bytes % page_bytes != 0)
        return refused("image of %2$lu bytes at %1$#lx is not whole pages", image.address,
                       image.bytes);
    const std::size_t count = images();
    if (count == images_max)
        return refused("image at %#lx: %lu writable load segments is the most the memory can hold",
                       image.address, images_max);
    const std::uint64_t limit = main_range().bytes + image_space_bytes;
    if (image.bytes > limit - image_end_)
        return refused("image of %lu bytes does not fit in the %lu bytes left for images",
                       image.bytes, limit - image_end_);
    if (overlap(image, main_range()))
        return refused("image at %#lx overlaps the main range at %#lx", image.address, main_base);
    for (std::size_t i = 0; i < count; ++i)
        if (overlap(image, images_[i].range))
            return refused("image at %#lx overlaps the one at %#lx", image.address,
                           images_[i].range.address);

    const auto index = static_cast<std::uint16_t>(count);
    images_[index] = {image, image_end_};
    image_end_ =
        std::min<std::uint64_t>(limit, round_up(image_end_ + image.bytes, shape_.block_bytes));

    auto next = std::make_unique<Order>();
    std::vector<std::uint16_t>& ascending = next->by_address;
    ascending.reserve(count + 1);
    ascending = order().by_address;
    const auto place = std::upper_bound(ascending.begin(), ascending.end(), image.address,
                                        [this](std::uintptr_t address, std::uint16_t other) {
                                            return address < images_[other].range.address;
                                        });
    ascending.insert(place, index);
    orders_.push_back(std::move(next));
    order_.store(orders_.back().get(), std::memory_order_release);  // pairs with order()
    return {};
}

bool AddressMap::leave_out(AddressRange range) noexcept {
    const std::size_t count = hole_count_.load(std::memory_order_relaxed);
    const std::size_t unit = shape_.block_bytes;
    if (count == holes_max || (range.address - main_base) % unit != 0 || range.bytes % unit != 0)
        return false;
    holes_[count] = range;
    hole_count_.store(count + 1, std::memory_order_release);  // pairs with is_left_out()
    return true;
}

bool AddressMap::is_left_out(AddressRange range) const noexcept {
    const std::size_t count = hole_count_.load(std::memory_order_acquire);
    return std::any_of(holes_.begin(), holes_.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](const AddressRange& hole) { return overlap(hole, range); });
}

AddressRange AddressMap::stack_slice(std::uint32_t global_thread) const noexcept {
    HIROBA_INVARIANT(global_thread < shape_.nodes * shape_.threads_per_node, "thread %u of %u x %u",
                     global_thread, shape_.nodes, shape_.threads_per_node);
    return {main_base + shape_.stack_bytes * global_thread, shape_.stack_bytes};
}

AddressRange AddressMap::early_arena() const noexcept {
    return {main_base + shape_.stack_bytes * shape_.nodes * shape_.threads_per_node,
            shape_.early_bytes};
}

AddressRange AddressMap::heap_arena(NodeId node) const noexcept {
    HIROBA_INVARIANT(node.value < shape_.nodes, "node %u of %u", node.value, shape_.nodes);
    return {early_arena().end() + shape_.heap_bytes * node.value, shape_.heap_bytes};
}

std::uint64_t AddressMap::space_bytes() const noexcept {
    return main_range().bytes + image_space_bytes;
}

const AddressMap::Image* AddressMap::image_at(std::uint64_t offset) const noexcept {
    const auto begin = images_.begin();
    const auto after = std::upper_bound(
        begin, begin + static_cast<std::ptrdiff_t>(images()), offset,
        [](std::uint64_t wanted, const Image& other) { return wanted < other.offset; });
    if (after == begin) return nullptr;
    const Image& image = *(after - 1);
    return offset - image.offset < image.range.bytes ? &image : nullptr;
}

std::uintptr_t AddressMap::address_of(std::uint64_t offset) const noexcept {
    if (offset < main_range().bytes) return main_base + offset;
    const Image* image = image_at(offset);
    return image == nullptr ? 0 : image->range.address + (offset - image->offset);
}

std::size_t AddressMap::extent_left(std::uint64_t offset, std::size_t bytes_max) const noexcept {
    const std::size_t main_bytes = main_range().bytes;
    if (offset < main_bytes) return std::min<std::size_t>(main_bytes - offset, bytes_max);
    const Image* image = image_at(offset);
    if (image == nullptr) return 0;
    return std::min<std::size_t>(image->range.bytes - (offset - image->offset), bytes_max);
}

NodeId AddressMap::initial_home(std::uint64_t offset) const noexcept {
    const std::size_t stacks = shape_.stack_bytes * shape_.nodes * shape_.threads_per_node;
    if (offset < stacks) {
        const std::uint64_t thread = offset / shape_.stack_bytes;
        return NodeId{static_cast<std::uint32_t>(thread / shape_.threads_per_node)};
    }
    const std::uint64_t heaps = stacks + shape_.early_bytes;
    // Node 0 ran alone before the take-over: the early arena and the images are its own.
    if (offset < heaps || offset >= main_range().bytes) return NodeId{0};
    return NodeId{static_cast<std::uint32_t>((offset - heaps) / shape_.heap_bytes)};
}

}  // namespace hiroba::dsm
