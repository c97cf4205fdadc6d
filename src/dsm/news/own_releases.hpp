// SPDX-License-Identifier: BSD-3-Clause
// Role: this node's releases by number: which have begun, which are over, and which an atomic owes
// (docs/protocol.md#before).
// Invariant: one that is over has begun; one that owe() returns had not begun when it was owed, so
// the thread that ends it finds the debt.
#pragma once

#include <atomic>

#include "dsm/protocol/stamp.hpp"

namespace hiroba::dsm {

/// Thread: any, but begin() and end(), which take the release role.
class OwnReleases {
public:
    /// Begins a release. Bytes written from here on may come too late for it, and are in the next.
    ReleaseNumber begin() noexcept {
        any_taken_.store(false, std::memory_order_relaxed);  // before the number: note_taken()
        return begun_.fetch_add(1, std::memory_order_seq_cst) + 1;  // pairs with owe()
    }
    /// A block becomes this node's own just now. Returns the release that had begun by then.
    ReleaseNumber note_taken() noexcept {
        const ReleaseNumber begun = begun_.load(std::memory_order_acquire);
        any_taken_.store(true, std::memory_order_relaxed);
        return begun;
    }
    /// Whether a block was taken since a release has begun: the next one counts, though it may find
    /// nothing to do. Relaxed: a thread sees what happened before its release.
    bool any_taken() const noexcept { return any_taken_.load(std::memory_order_relaxed); }
    /// False: one may have begun since note_taken() returned `release`. Else the next one finds
    /// what this thread did before.
    bool is_last(ReleaseNumber release) const noexcept {
        std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with begin()
        return begun() == release;
    }
    /// Elsewhere than in the release role a hint.
    ReleaseNumber begun() const noexcept { return begun_.load(std::memory_order_relaxed); }
    /// All that `release` tells of can be learned from this node.
    void end(ReleaseNumber release) noexcept {
        completed_.store(release, std::memory_order_release);  // pairs with completed()
    }
    ReleaseNumber completed() const noexcept { return completed_.load(std::memory_order_acquire); }

    /// The next release, which has not begun, is owed from here on: it tells what this thread did
    /// before.
    ReleaseNumber owe() noexcept;
    /// The last one that is owed.
    ReleaseNumber owed() const noexcept { return debt_.load(std::memory_order_seq_cst); }
    bool is_owed(ReleaseNumber release) const noexcept { return owed() >= release; }
    /// Whether one is owed that is not over. Relaxed order makes it a hint.
    bool has_debt(std::memory_order order = std::memory_order_acquire) const noexcept {
        return debt_.load(order) > completed_.load(order);
    }

private:
    friend class NodeView;

    std::atomic<ReleaseNumber> begun_{0}, completed_{0};  ///< change in the release role
    std::atomic<ReleaseNumber> debt_{0};
    std::atomic<bool> any_taken_{false};
};

}  // namespace hiroba::dsm
