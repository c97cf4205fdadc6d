// SPDX-License-Identifier: BSD-3-Clause
// Role: a version that differs little from those before it, on its way along with its notice; and,
// at the reader, those that have come and wait for a fetch by that notice.
// Invariant: what is taken is the version that the notice names, on top of a version that it says
// it differs from in nothing but these lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ids.hpp"
#include "base/latch.hpp"
#include "dsm/block/block_table.hpp"
#include "dsm/protocol/timestamp.hpp"

namespace hiroba::dsm {

/// A version of `node`'s public copy: the lines, in order, in which it differs from each of some
/// former versions.
struct CarriedLines {
    static constexpr std::size_t bytes_max = 2048;
    std::uint64_t wts, stamp, change;  ///< as its BlockRecord has them
    std::uint64_t lines;
    std::uint64_t bases[BlockRecord::versions];  ///< as LinesSince has them
    BlockId block;
    NodeId node;
    std::uint64_t length;  ///< of `bytes`, as they travel
    std::byte bytes[bytes_max];

    std::size_t travelling_bytes() const noexcept { return offsetof(CarriedLines, bytes) + length; }
};

/// The last ones that came, one of those blocks that share a slot. Thread: any; async-signal-safe.
class CameLines {
public:
    void keep(const CarriedLines& came) noexcept;
    /// @param base  what the reader's version would have as LinesSince::base
    std::optional<CarriedLines> find(BlockId block, NodeId node, Timestamp wts,
                                     std::uint64_t base) noexcept;

private:
    friend class NodeView;
    Latch latch_;
    std::array<CarriedLines, 16> slots_{};
};

}  // namespace hiroba::dsm
