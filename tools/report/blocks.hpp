// SPDX-License-Identifier: BSD-3-Clause
// Role: what the touches of one block come to: who wrote what of it between the same meetings.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "tools/report/analysis.hpp"

namespace hiroba::tools {

/// One block's part of Analysis::touches.
struct BlockStory {
    std::uint64_t block = 0;
    std::span<const Touch> touches;

    /// What it cost within regions.
    std::int64_t cost_in_regions() const;
};

std::vector<BlockStory> stories_of(const Analysis& analysis);

/// Several nodes' changes of a block between the same meetings.
struct Sharing {
    unsigned phases = 0;              ///< in which several nodes wrote
    unsigned apart = 0;               ///< of these, such that each wrote bytes of its own
    unsigned dealt = 0;               ///< of these, such that the bytes alternate
    std::set<std::uint32_t> writers;  ///< in these phases
    /// Nothing but where the bytes lie has nodes wait for each other.
    bool is_false() const { return apart > 0 && apart * 2 >= phases; }
};
Sharing sharing_of(const BlockStory& story, std::uint64_t block_bytes);

}  // namespace hiroba::tools
