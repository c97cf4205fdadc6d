// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/block/carried_lines.hpp"

#include <algorithm>
#include <mutex>

namespace hiroba::dsm {

void CameLines::keep(const CarriedLines& came) noexcept {
    const std::scoped_lock guard{latch_};
    CarriedLines& slot = slots_[came.block % slots_.size()];
    if (slot.block != came.block || slot.wts <= came.wts) slot = came;
}

std::optional<CarriedLines> CameLines::find(BlockId block, NodeId node, Timestamp wts,
                                            std::uint64_t base) noexcept {
    const std::scoped_lock guard{latch_};
    const CarriedLines& slot = slots_[block % slots_.size()];
    if (slot.block != block || slot.node != node || slot.wts != wts.value) return std::nullopt;
    if (std::ranges::find(slot.bases, base) == std::end(slot.bases)) return std::nullopt;
    return slot;
}

}  // namespace hiroba::dsm
