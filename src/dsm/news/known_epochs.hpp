// SPDX-License-Identifier: BSD-3-Clause
// Role: which epochs of each node the program here is synchronized with: what that node wrote in
// earlier ones came before all that the program does now (docs/protocol.md#unordered).
// Invariant: an epoch is raised only when the program has heard of it: what a handler or a
// background flush hears is kept apart until then.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/bytes.hpp"
#include "base/latch.hpp"
#include "dsm/block/change_log.hpp"

namespace hiroba::dsm {

/// Thread: any, but where something else is said.
class KnownEpochs {
public:
    static constexpr Epoch first_epoch = 1;

    /// @param nodes  0: races are not looked for, and nothing is kept
    KnownEpochs(std::size_t nodes, NodeId self);

    bool are_kept() const noexcept { return !known_.empty(); }
    std::size_t nodes() const noexcept { return known_.size(); }
    /// The size of what encode() writes.
    std::size_t bytes() const noexcept { return known_.size() * sizeof(Epoch); }

    /// The first epoch of `node` that is not known.
    Epoch first_unknown(NodeId node) const noexcept {
        // Relaxed: a thread that has synchronized sees what it has learned.
        return known_[node.value].load(std::memory_order_relaxed);
    }
    bool is_known(LastChange change) const noexcept {
        return change.node == self_ || change.epoch < first_unknown(change.node);
    }
    /// The program is synchronized with all that `node` did before `epoch`.
    void raise(NodeId node, Epoch epoch) noexcept;

    /// The mark of what this node merges now.
    LastChange this_change() const noexcept {
        return {self_, own_.load(std::memory_order_relaxed)};  // changes in the release role
    }
    /// With the release role: what was merged up to now is told by the next news.
    void end_epoch() noexcept { own_.fetch_add(1, std::memory_order_release); }

    /// Writes what the program here knows behind other news. Returns how many bytes.
    std::size_t encode(MutableBytes out) const noexcept;
    /// Keeps what `news` say for take_learned(): perhaps in a handler, with the latch of a block.
    void learn(Bytes news) noexcept;
    bool has_learned() const noexcept {
        return has_learned_.load(std::memory_order_acquire);  // pairs with learn()
    }
    void take_learned() noexcept;

    /// Keeps what lies in the flush object. It was put there by flushes of the program, and each
    /// background flusher hands on what it finds, though its own program need not know of it. As
    /// the next two with the latch of the flushes.
    void remember_flushed(Bytes news) noexcept;
    /// Likewise, and makes `news` say all that is kept so.
    void keep_flushed(MutableBytes news) noexcept;
    void know_what_was_flushed() noexcept;

private:
    friend class NodeView;

    NodeId self_;
    std::atomic<Epoch> own_{first_epoch};    ///< changes in the release role
    std::vector<std::atomic<Epoch>> known_;  ///< per node
    Latch learned_latch_;
    std::vector<Epoch> learned_;  ///< per node, under learned_latch_: not known yet
    std::atomic<bool> has_learned_{false};
    std::vector<Epoch> flushed_;  ///< per node, as the flush object has it
};

}  // namespace hiroba::dsm
