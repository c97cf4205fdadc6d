// SPDX-License-Identifier: BSD-3-Clause
// Role: which blocks of this node's own other nodes will want: behind which synchronization they
// wanted some before, and what lies near one that they want now.
// Invariant: only guesses; nothing but time depends on them.
#pragma once

#include "base/latch.hpp"
#include "dsm/engine/use_predictor.hpp"
#include "dsm/engine/wanted_runs.hpp"

namespace hiroba::dsm {

/// Thread: any; runs() with the latch.
class WantedBlocks {
public:
    UsePredictor& expected() noexcept { return expected_; }
    bool try_lock() noexcept { return latch_.try_lock(); }
    void unlock() noexcept { latch_.unlock(); }
    WantedRuns& runs() noexcept { return runs_; }

private:
    friend class NodeView;

    UsePredictor expected_;
    Latch latch_;
    WantedRuns runs_;
};

}  // namespace hiroba::dsm
