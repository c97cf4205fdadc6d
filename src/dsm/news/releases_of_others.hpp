// SPDX-License-Identifier: BSD-3-Clause
// Role: which releases of other nodes this one has acquired, and which its bytes were read from
// (docs/protocol.md#before).
// Invariant: what an acquired release has made stale is inaccessible here, and of what was held
// back of it all is shown.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/sparse_array.hpp"
#include "dsm/protocol/stamp.hpp"

namespace hiroba::dsm {

/// Thread: any; those that change it have the acquire role.
class AcquiredReleases {
public:
    explicit AcquiredReleases(std::uint32_t nodes) : acquired_(nodes), inaccessible_(nodes) {}

    /// A thread that finds it acquired finds stale what the release has made so.
    bool has(Stamp stamp) const noexcept {
        // Acquire: pairs with set_acquired().
        return acquired_[stamp.writer().value].load(std::memory_order_acquire) >= stamp.release();
    }
    /// As the last set_acquired() of it has said, or one before.
    ReleaseNumber of(std::uint32_t node) const noexcept {
        return acquired_[node].load(std::memory_order_relaxed);
    }
    /// As has(), but what this node has held back of it may not have been shown yet.
    bool is_inaccessible(Stamp stamp) const noexcept {
        return inaccessible_[stamp.writer().value].load(std::memory_order_seq_cst) >=
               stamp.release();
    }
    /// In one order with NeededReleases::note(), before which it is seen, or which it sees.
    void set_inaccessible(std::span<const ReleaseNumber> applied) noexcept {
        for (std::uint32_t node = 0; node < applied.size(); ++node)
            inaccessible_[node].store(applied[node], std::memory_order_seq_cst);
    }
    void set_acquired(std::span<const ReleaseNumber> applied) noexcept {
        for (std::uint32_t node = 0; node < applied.size(); ++node)
            acquired_[node].store(applied[node], std::memory_order_release);  // pairs with has()
    }

private:
    friend class NodeView;

    SparseArray<std::atomic<ReleaseNumber>> acquired_;      ///< per node
    SparseArray<std::atomic<ReleaseNumber>> inaccessible_;  ///< likewise
};

/// What a release of this node has read of other nodes' releases while it merged.
/// Thread: the one with the release role, but any().
class NeededReleases {
public:
    explicit NeededReleases(std::uint32_t nodes) : needs_(nodes) {}

    /// Something of others is about to be published. In one order with an acquire's look at it.
    void note_any() noexcept { any_.store(true, std::memory_order_seq_cst); }
    void note(Stamp stamp) noexcept {
        ReleaseNumber& need = needs_[stamp.writer().value];
        need = std::max(need, stamp.release());
    }
    bool any() const noexcept { return any_.load(std::memory_order_seq_cst); }
    ReleaseNumber of(std::uint32_t node) const noexcept { return needs_[node]; }
    /// All that was noted has been taken over.
    void taken() noexcept { any_.store(false, std::memory_order_release); }  // pairs with any()

private:
    friend class NodeView;

    SparseArray<ReleaseNumber> needs_;  ///< per node
    std::atomic<bool> any_{false};
};

}  // namespace hiroba::dsm
