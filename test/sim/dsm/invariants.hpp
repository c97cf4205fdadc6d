// SPDX-License-Identifier: BSD-3-Clause
// Role: the invariants of docs/protocol.md that can be seen between two steps, checked on all nodes
// of a cluster. Numbers are those of that page.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/dsm/cluster.hpp"

namespace hiroba::sim_test {

class Invariants {
public:
    Invariants(Cluster& cluster, std::vector<std::uintptr_t> blocks);

    /// What is broken now; empty: nothing. Blocks that a thread is at work on are left out.
    std::string broken();
    /// The same, but only from what is there now, not from what was seen before: for explorers that
    /// come to a state on several ways.
    std::string broken_now();
    /// Invariant 4 as it stands after a release of `node` with no other thread beside it.
    std::string broken_after_release(std::uint32_t node);
    std::uint64_t checks() const noexcept { return checks_; }

private:
    struct Seen {
        std::uint64_t version = 0;
        std::uint64_t wts = 0;
    };
    std::string broken_here(std::uint32_t node, std::size_t index, bool remember);
    std::string broken_locks_and_copies(bool remember);
    std::string differing_copies(std::size_t index);
    std::string readable_beside_exclusive(std::size_t index);
    bool is_home(std::uint32_t node, const dsm::NodeView::Block& view, dsm::BlockId block) const;
    bool has_lock(std::uint32_t node, const dsm::NodeView::Block& view, dsm::BlockId block) const;
    bool is_at_work_on(std::size_t index);
    bool is_stack_of(std::uint32_t node, std::size_t index) const;
    std::string untold_line(std::size_t index, const dsm::NodeView::Block& view,
                            const dsm::NodeView::Block& other);
    std::string broken_copy(std::uint32_t node, std::size_t index,
                            const dsm::NodeView::Block& view);

    Cluster& cluster_;
    std::vector<std::uintptr_t> addresses_;
    std::vector<dsm::BlockId> blocks_;
    std::vector<Seen> seen_;  ///< by node, then block
    /// The content that each wts of a block stands for.
    std::map<std::pair<dsm::BlockId, std::uint64_t>, std::vector<std::byte>> contents_;
    std::uint64_t checks_ = 0;
};

}  // namespace hiroba::sim_test
