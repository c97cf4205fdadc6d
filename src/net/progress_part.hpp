// SPDX-License-Identifier: BSD-3-Clause
// Role: what works under an endpoint's progress role beside the provider: the executor of
// net/offload. Invariant: at most one for each endpoint, attached before connect().
#pragma once

#include <cstddef>

#include "net/provider/provider.hpp"

namespace hiroba::net {

class ProgressPart {
public:
    virtual ~ProgressPart() = default;
    /// Does what can be done now; returns how much. Never blocks. Progress role.
    virtual std::size_t progress() noexcept = 0;
    /// True once when work was queued behind what is under way: no thread was woken for it, so the
    /// poll that ends what is under way carries it out. Progress role.
    virtual bool take_joined() noexcept { return false; }
    /// Answers of peers that are not mapped are on their way, so few that other threads' questions
    /// are worth a moment's wait. A hint. Any thread.
    virtual bool awaits_few_answers() const noexcept { return false; }
    /// An operation whose OpId has bit 0 set is complete, or its peer is lost. Progress role.
    virtual void completed(OpId id) noexcept = 0;
    virtual void failed(OpId id) noexcept = 0;
    /// A request of which only `then` was kept.
    virtual void ended(const Completion& then, Outcome outcome) noexcept = 0;
    /// There is work that the provider has no room for; room is not announced. Any thread.
    virtual bool blocked() const noexcept = 0;
    /// Asked by the service thread once its sleep is announced: false when there is work. After
    /// true the thread that brings work wakes the service thread.
    virtual bool may_sleep() noexcept = 0;
    /// Work was queued since the service thread, which alone asks, asked last.
    virtual bool queued_since_last_asked() noexcept = 0;
    /// The service thread is up again.
    virtual void awake() noexcept = 0;
    /// Foreign calls wait. Any thread; the one that brings a call wakes the service thread.
    virtual bool has_calls() const noexcept { return false; }
    /// Carries out those that wait. The service thread, with the progress role.
    virtual void run_calls() noexcept {}
};

}  // namespace hiroba::net
