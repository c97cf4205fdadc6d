// SPDX-License-Identifier: BSD-3-Clause
// Role: what the threads of a node bring to a reduction of the team: one of them adds up what has
// come, and alone goes to the shared variables, which may be another node's.
// Invariant: an offer is made by its thread, and taken by that thread itself or by the node's
// leader, never by both. The thread that has made one waits only until it is taken or no thread
// leads: as long as it would wait for the lock of the variables. No thread waits for one that has
// not come. Source: Hendler, Incze, Shavit, Tzafrir, "Flat combining and the
// synchronization-parallelism tradeoff", SPAA 2010.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/latch.hpp"
#include "base/thread_context.hpp"

namespace hiroba::omp {

/// One thread's values. In memory private to the node, the thread's own.
struct ReductionOffer {
    void* data = nullptr;         ///< as the compiler describes them
    std::uint64_t construct = 0;  ///< number of the reduction in the region
    std::atomic<bool> taken{false};
    ReductionOffer* next = nullptr;
};

/// The offers of a team's threads on one node. Thread: any, at once.
class ReductionOffers {
public:
    void add(ReductionOffer& offer) noexcept {
        const RuntimeScope latches;
        const std::scoped_lock guard{latch_};
        offer.next = offers_;
        offers_ = &offer;
    }
    /// True: the caller leads from now on. One thread leads at a time.
    bool try_lead() noexcept { return !is_led() && !led_.exchange(true); }
    bool is_led() const noexcept { return led_.load(); }
    void stop_leading() noexcept { led_.store(false); }

    /// The leader takes its own offer and those of the same construct; returns these, linked.
    ReductionOffer* take(const ReductionOffer& own) noexcept {
        const RuntimeScope latches;
        const std::scoped_lock guard{latch_};
        ReductionOffer *taken = nullptr, *left = nullptr, *next = nullptr;
        for (ReductionOffer* offer = offers_; offer != nullptr; offer = next) {
            next = offer->next;
            if (offer == &own) continue;
            ReductionOffer*& list = offer->construct == own.construct ? taken : left;
            offer->next = list;
            list = offer;
        }
        offers_ = left;
        return taken;
    }
    /// Between regions: threads of a cancelled one may have left some.
    void forget() noexcept { offers_ = nullptr; }

private:
    Latch latch_;
    ReductionOffer* offers_ = nullptr;
    std::atomic<bool> led_{false};
};

}  // namespace hiroba::omp
