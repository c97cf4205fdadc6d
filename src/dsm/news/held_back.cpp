// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/held_back.hpp"

#include <cstring>

#include "dsm/memory/merge.hpp"

namespace hiroba::dsm {

void HeldBack::hold_back(BlockId block, const std::byte* ours, ReleaseNumber by) noexcept {
    BlockEntry& entry = entries_[block];
    std::memcpy(bases_.data() + space_.offset_of(block), ours, space_.block_bytes());
    entry.withheld.by = by;
    if (entry.held_back) return;
    entry.held_back = true;
    if (entry.withheld.listed) return;
    entry.withheld.listed = true;
    const std::scoped_lock guard{latch_};
    HIROBA_INVARIANT(count_ < blocks_.size(), "%lu blocks held back", count_);
    blocks_[count_++] = block;
}

void HeldBack::stop(BlockId block) noexcept {
    BlockEntry& entry = entries_[block];
    if (!entry.held_back) return;
    std::byte* const live = space_.private_copy(block);
    const Scratch seen{scratch_};
    std::memcpy(seen.get(), live, space_.block_bytes());
    store_foreign(live, seen.get(), twin_of(block), copies_.own(block), space_.block_bytes());
    entry.held_back = false;
}

}  // namespace hiroba::dsm
