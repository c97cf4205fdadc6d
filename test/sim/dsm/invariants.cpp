// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/invariants.hpp"

#include <cstring>

#include "dsm/protocol/link_word.hpp"

namespace hiroba::sim_test {

using dsm::BlockState;

Invariants::Invariants(Cluster& cluster, std::vector<std::uintptr_t> blocks)
    : cluster_(cluster),
      addresses_(std::move(blocks)),
      seen_(cluster.options().nodes * addresses_.size()) {
    for (const std::uintptr_t address : addresses_) {
        blocks_.push_back(
            static_cast<dsm::BlockId>(*cluster.map().offset_of(address) / page_bytes));
    }
}

std::string Invariants::broken() { return broken_locks_and_copies(true); }

std::string Invariants::broken_now() {
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
        if (std::string what = differing_copies(index); !what.empty()) return what;
    }
    return broken_locks_and_copies(false);
}

std::string Invariants::broken_locks_and_copies(bool remember) {
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
        std::uint32_t unlocked = 0;
        for (std::uint32_t node = 0; node < cluster_.options().nodes; ++node) {
            const auto view = cluster_.node(node).coherence().look_at(blocks_[index]);
            if (view) {
                unlocked += has_lock(node, *view, blocks_[index]);
            }
            if (std::string what = broken_here(node, index, remember); !what.empty()) {
                return "node " + std::to_string(node) + ", block " +
                       std::to_string(blocks_[index]) + ": " + what;
            }
        }
        if (std::string what = readable_beside_exclusive(index); !what.empty()) return what;
        if (unlocked > 1) {
            return "block " + std::to_string(blocks_[index]) + ": invariant 1: its lock lies at " +
                   std::to_string(unlocked) + " nodes";
        }
    }
    return {};
}

std::string Invariants::broken_here(std::uint32_t rank, std::size_t index, bool remember) {
    ClusterNode& node = cluster_.node(rank);
    const auto view = node.coherence().look_at(blocks_[index]);
    if (!view) return {};
    ++checks_;
    // Where writes are noted by the machine a readonly page may already have been written; a
    // release that has begun takes the note away before it merges. Likewise where first writes
    // fault: an atomic may have made a page writable behind that release's look at it, and another
    // thread writes when it has merged the block.
    const bool faults = node.engine().facts().write_faults && cluster_.threads_of(rank) == 1;
    const bool unwritten =
        faults || (node.engine().is_clean(addresses_[index]) && !view->releasing);
    const bool clean =
        view->state == BlockState::invalid || (view->state == BlockState::readonly && unwritten);
    if (clean && std::memcmp(view->private_bytes, view->twin, page_bytes) != 0) {
        return "invariant 4: the private copy differs from the public one in state " +
               std::to_string(static_cast<int>(view->state));
    }
    if (view->state == BlockState::invalidating) return "invariant 7: invalidating, latch open";
    const bool lease_counts =
        !dsm::keeps_lock(view->state) && !is_home(rank, *view, blocks_[index]) && !view->moved;
    if (readable(view->state) && !view->acquiring && lease_counts && !is_at_work_on(index) &&
        view->rts < view->expired_to) {
        return "invariant 6: readable until " + std::to_string(view->rts.value) +
               ", but leases have expired up to " + std::to_string(view->expired_to.value);
    }
    const bool stays = view->state == BlockState::pinned || dsm::keeps_lock(view->state);
    if (stays && !node.engine().is_readable(addresses_[index])) {
        return "invariant 8: pinned, exclusive or held, and inaccessible";
    }
    if (is_stack_of(rank, index) && !stays && view->state != BlockState::invalid) {
        return "invariant 8: a stack in state " + std::to_string(static_cast<int>(view->state));
    }
    if (readable(view->state) && !view->may_be_shown && !view->acquiring) {
        return "invariant 14: readable, and what came before its bytes is not acquired";
    }
    return remember ? broken_copy(rank, index, *view) : std::string{};
}

bool Invariants::is_stack_of(std::uint32_t rank, std::size_t index) const {
    const dsm::AddressMap& map = cluster_.map();
    const std::uint32_t threads = map.shape().threads_per_node;
    for (std::uint32_t thread = rank * threads; thread < (rank + 1) * threads; ++thread) {
        const dsm::AddressRange slice = map.stack_slice(thread);
        if (addresses_[index] >= slice.address && addresses_[index] < slice.end()) return true;
    }
    return false;
}

bool Invariants::has_lock(std::uint32_t rank, const dsm::NodeView::Block& view,
                          dsm::BlockId block) const {
    const NodeId first = cluster_.map().initial_home(std::uint64_t{block} * page_bytes);
    return dsm::LinkWord::from_raw(view.record.link).kind(NodeId{rank}, first) ==
           dsm::LinkWord::Kind::unlocked;
}

/// The lock is free there, and was not given back by a node that may not have the home's bytes.
bool Invariants::is_home(std::uint32_t rank, const dsm::NodeView::Block& view,
                         dsm::BlockId block) const {
    const NodeId first = cluster_.map().initial_home(std::uint64_t{block} * page_bytes);
    const std::uint64_t home = view.record.token_home;
    return has_lock(rank, view, block) && (home == 0 ? first.value : home - 1) == rank;
}

/// Some node's thread is: it may have taken the lock and not marked the block yet.
bool Invariants::is_at_work_on(std::size_t index) {
    for (std::uint32_t rank = 0; rank < cluster_.options().nodes; ++rank) {
        if (!cluster_.node(rank).coherence().look_at(blocks_[index])) return true;
    }
    return false;
}

std::string Invariants::broken_after_release(std::uint32_t rank) {
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
        const auto view = cluster_.node(rank).coherence().look_at(blocks_[index]);
        if (!view || view->state == BlockState::exclusive ||
            std::memcmp(view->private_bytes, view->twin, page_bytes) == 0) {
            continue;
        }
        return "node " + std::to_string(rank) + ", block " + std::to_string(blocks_[index]) +
               ": invariant 4: unmerged bytes behind a release, in state " +
               dsm::name_of(view->state);
    }
    return {};
}

std::string Invariants::readable_beside_exclusive(std::size_t index) {
    for (std::uint32_t rank = 0; rank < cluster_.options().nodes; ++rank) {
        const auto holder = cluster_.node(rank).coherence().look_at(blocks_[index]);
        if (!holder || holder->state != BlockState::exclusive) continue;
        for (std::uint32_t other = 0; other < cluster_.options().nodes; ++other) {
            const auto view = cluster_.node(other).coherence().look_at(blocks_[index]);
            if (other == rank || !view || !readable(view->state) ||
                view->rts.value < holder->record.copy_wts)
                continue;
            return "block " + std::to_string(blocks_[index]) +
                   ": invariant 15: exclusive at node " + std::to_string(rank) +
                   ", and readable until " + std::to_string(view->rts.value) + " at node " +
                   std::to_string(other);
        }
    }
    return {};
}

/// Where another node has a version that a copy's record names, the two are equal but for the lines
/// named: it would read no others.
std::string Invariants::untold_line(std::size_t index, const dsm::NodeView::Block& view,
                                    const dsm::NodeView::Block& other) {
    for (const dsm::LinesSince& since : view.record.copy_since) {
        if (since.base != other.record.copy_wts + 1) continue;
        for (std::size_t at = 0; at < page_bytes; ++at) {
            const bool told = (since.lines >> at / (page_bytes / dsm::lines_of_block) & 1) != 0;
            if (told || other.public_bytes[at] == view.public_bytes[at]) continue;
            return "block " + std::to_string(blocks_[index]) + ": invariant 16: version " +
                   std::to_string(view.record.copy_wts) + " differs from " +
                   std::to_string(other.record.copy_wts) + " in byte " + std::to_string(at) +
                   ", which its record does not tell";
        }
        return {};  // the first that names it is the one that is read by
    }
    return {};
}

/// Public copies of one wts must be equal, whichever nodes have them.
std::string Invariants::differing_copies(std::size_t index) {
    for (std::uint32_t a = 0; a < cluster_.options().nodes; ++a) {
        const auto one = cluster_.node(a).coherence().look_at(blocks_[index]);
        for (std::uint32_t b = 0; one && b < a; ++b) {
            const auto other = cluster_.node(b).coherence().look_at(blocks_[index]);
            if (!other) continue;
            for (const auto& fault :
                 {untold_line(index, *one, *other), untold_line(index, *other, *one)}) {
                if (!fault.empty()) return fault;
            }
            if (one->record.copy_wts != other->record.copy_wts) continue;
            if (std::memcmp(one->public_bytes, other->public_bytes, page_bytes) != 0) {
                return "block " + std::to_string(blocks_[index]) + ": invariant 2: wts " +
                       std::to_string(one->record.copy_wts) + " names two contents, at nodes " +
                       std::to_string(b) + " and " + std::to_string(a);
            }
        }
    }
    return {};
}

std::string Invariants::broken_copy(std::uint32_t rank, std::size_t index,
                                    const dsm::NodeView::Block& view) {
    Seen& seen = seen_[rank * blocks_.size() + index];
    const dsm::BlockRecord& record = view.record;
    if (record.copy_version % 2 != 0 || record.copy_version == seen.version) return {};
    if (record.copy_wts < seen.wts) {
        return "invariant 2: the copy's wts fell from " + std::to_string(seen.wts) + " to " +
               std::to_string(record.copy_wts);
    }
    seen = {record.copy_version, record.copy_wts};
    const auto [known, is_new] = contents_.try_emplace({blocks_[index], record.copy_wts});
    if (is_new) {
        known->second.assign(view.public_bytes, view.public_bytes + page_bytes);
    } else if (std::memcmp(known->second.data(), view.public_bytes, page_bytes) != 0) {
        return "invariant 2: wts " + std::to_string(record.copy_wts) + " names two contents";
    }
    return {};
}

}  // namespace hiroba::sim_test
