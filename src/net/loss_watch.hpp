// SPDX-License-Identifier: BSD-3-Clause
// Role: hears from the launcher which nodes died, and tells the provider, so that what is pending
// to them fails instead of waiting for ever. Invariant: has the control channel's receiving end to
// itself: made after the last collective.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/result.hpp"
#include "net/bootstrap/job.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net {

/// One sleeping thread, from start() to the end of its life.
class LossWatch {
public:
    /// Does nothing where the launcher does not tell: HIROBA_LOSS_GRACE is 0, or there is no
    /// launcher.
    /// @param provider  its peer_lost() is called for each node that dies; outlives the watch
    /// @param lost  called after it, on the watch's thread, for layers that wait for messages
    static Result<std::unique_ptr<LossWatch>> start(const JobInfo& job, Provider& provider,
                                                    std::function<void(NodeId)> lost = {});
    ~LossWatch();

private:
    LossWatch(const JobInfo& job, Provider& provider, std::function<void(NodeId)> lost, int stop);
    void watch() noexcept;

    int control_;
    int stop_;  ///< an eventfd, readable when the watch is to end
    std::uint32_t nodes_;
    Provider& provider_;
    std::function<void(NodeId)> lost_;
    std::thread thread_;
};

}  // namespace hiroba::net
