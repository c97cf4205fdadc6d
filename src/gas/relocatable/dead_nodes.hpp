// SPDX-License-Identifier: BSD-3-Clause
// Role: which nodes of the job have died, as far as this one has been told.
// Invariant: the dead stay dead.
#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "gas/relocatable/rank_set.hpp"

namespace hiroba::gas {

/// Nodes that died. Thread: any.
class DeadNodes {
public:
    void add(NodeId node) noexcept { ranks_.add(node.value); }
    bool contains(std::uint32_t node) const noexcept { return ranks_.contains(node); }
    std::uint32_t count() const noexcept { return ranks_.count(); }

private:
    SharedRankSet ranks_;
};

}  // namespace hiroba::gas
