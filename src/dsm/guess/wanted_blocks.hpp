// SPDX-License-Identifier: BSD-3-Clause
// Role: which blocks of this node's own other nodes will want: behind which synchronization they
// wanted some before, and what lies near one that they want now.
// Invariant: only guesses; nothing but time depends on them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/latch.hpp"
#include "dsm/guess/use_predictor.hpp"
#include "dsm/guess/wanted_runs.hpp"

namespace hiroba::dsm {

/// Thread: any; runs() with the latch.
class WantedBlocks {
public:
    UsePredictor& expected() noexcept { return expected_; }
    /// As expected().arrive().
    std::span<UsePredictor::Run> arrive(SyncPlace place) noexcept {
        const auto runs = expected_.arrive(place);
        place_.store(expected_.here(), std::memory_order_relaxed);  // a guess, as all here
        return runs;
    }
    /// Where the threads of this node synchronized last.
    std::uint8_t place() const noexcept { return place_.load(std::memory_order_relaxed); }
    bool try_lock() noexcept { return latch_.try_lock(); }
    void unlock() noexcept { latch_.unlock(); }
    WantedRuns& runs() noexcept { return runs_; }

private:
    friend class NodeView;

    UsePredictor expected_;
    std::atomic<std::uint8_t> place_{UINT8_MAX};
    Latch latch_;
    WantedRuns runs_;
};

}  // namespace hiroba::dsm
