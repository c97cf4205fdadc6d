// SPDX-License-Identifier: BSD-3-Clause
// Role: how a global address of 64 bits names a node, a color, a segment and an offset.
// Source: ACP basic layer, section 5.3 and table 3: the widths follow the number of ranks.
//
//   | node: 5 to 20 bits | color: 2 | segment: 22 to 7 | offset: 35 |
//
// Invariant: segments count from 1, so that no valid address is 0. Segment and offset are added as
// one number, the `place`: memory larger than an offset reaches takes several segment numbers in a
// row, and address arithmetic crosses them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/ids.hpp"

namespace hiroba::gas {

/// A global address, taken apart.
struct AddressParts {
    NodeId node;
    std::uint32_t color = 0;
    std::uint64_t place = 0;  ///< segment number and offset
};

/// The widths for a job. Any thread; a value.
class AddressLayout {
public:
    static constexpr unsigned color_bits = 2;
    static constexpr std::uint32_t colors_max = 1u << color_bits;
    static constexpr unsigned offset_bits = 35;
    static constexpr std::uint32_t nodes_max = std::uint32_t{1} << 20;

    /// @param nodes  1 to nodes_max
    explicit constexpr AddressLayout(std::uint32_t nodes)
        : nodes_(nodes), node_shift_(64 - node_bits(nodes)) {}

    constexpr std::uint64_t pack(const AddressParts& parts) const noexcept {
        return std::uint64_t{parts.node.value} << node_shift_ |
               std::uint64_t{parts.color} << color_shift() | parts.place;
    }
    constexpr AddressParts parts(std::uint64_t address) const noexcept {
        return {NodeId{static_cast<std::uint32_t>(address >> node_shift_)},
                static_cast<std::uint32_t>(address >> color_shift()) & ((1u << color_bits) - 1),
                address & (place_end() - 1)};
    }
    /// False for 0, for nodes that do not exist, and for places before segment 1.
    constexpr bool is_address(std::uint64_t address) const noexcept {
        const AddressParts split = parts(address);
        return split.node.value < nodes_ && segment_of(split.place) != 0;
    }

    static constexpr std::uint64_t segment_of(std::uint64_t place) noexcept {
        return place >> offset_bits;
    }
    static constexpr std::uint64_t place_of(std::uint64_t segment) noexcept {
        return segment << offset_bits;
    }
    /// The first place that has no address.
    constexpr std::uint64_t place_end() const noexcept { return std::uint64_t{1} << color_shift(); }
    /// Segment numbers are below this.
    constexpr std::uint64_t segments_end() const noexcept { return segment_of(place_end()); }
    constexpr std::uint32_t nodes() const noexcept { return nodes_; }

private:
    static constexpr unsigned node_bits(std::uint32_t nodes) noexcept {
        return std::max(5u, static_cast<unsigned>(std::bit_width(nodes - 1)));
    }
    constexpr unsigned color_shift() const noexcept { return node_shift_ - color_bits; }

    std::uint32_t nodes_;
    unsigned node_shift_;
};

}  // namespace hiroba::gas
