// SPDX-License-Identifier: BSD-3-Clause
// Role: which nodes of the job have died, as far as this one has been told.
// Invariant: the dead stay dead.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.hpp"

namespace hiroba::gas {

/// Nodes that died. Thread: any.
class DeadNodes {
public:
    void add(NodeId node) noexcept { mask_.fetch_or(std::uint64_t{1} << node.value); }
    bool contains(std::uint32_t node) const noexcept { return (mask_.load() >> node & 1) != 0; }
    std::uint64_t mask() const noexcept { return mask_.load(); }

private:
    std::atomic<std::uint64_t> mask_{0};
};

}  // namespace hiroba::gas
