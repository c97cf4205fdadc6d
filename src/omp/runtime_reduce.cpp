// SPDX-License-Identifier: BSD-3-Clause
// Role: reductions whose values the compiler hands over, so that they can be added up on each node
// before one thread of it goes to the variables.
// Invariant: the compiler's function runs as a part of the program, on the program's stack.
#include "base/program_call.hpp"
#include "base/thread_context.hpp"
#include "net/net.hpp"
#include "omp/runtime_core.hpp"

namespace hiroba::omp {

bool RuntimeCore::reduce(std::uint64_t key, void* data, CombineFunction combine) noexcept {
    ThreadState& thread = self();
    Frame& frame = *thread.frame;
    if (frame.place.team_size == 1) return true;
    if (!is_spread(frame) || members_here_ == 1 || combine == nullptr) {
        lock(key);
        return true;
    }
    ReductionOffers& offers = frame.team->reductions;
    ReductionOffer& own = thread.offer;
    own.data = data;
    own.construct = frame.reductions_met++;
    own.taken.store(false, std::memory_order_relaxed);  // published by add()
    offers.add(own);
    while (!offers.try_lead()) {
        await_offer(own);
        if (own.taken.load(std::memory_order_acquire)) return false;  // pairs with the leader's
    }
    const bool leads = !own.taken.load(std::memory_order_acquire);
    if (leads) {
        lock(key);
        ReductionOffer* next = nullptr;
        for (ReductionOffer* each = offers.take(own); each != nullptr; each = next) {
            next = each->next;
            call_program(combine, data, each->data);
            each->taken.store(true, std::memory_order_release);
        }
    }
    offers.stop_leading();
    parts_.endpoint->wake_local();
    return leads;
}

/// Until another thread has taken the offer, or nobody leads.
void RuntimeCore::await_offer(const ReductionOffer& own) noexcept {
    const ReductionOffers& offers = everywhere_.reductions;
    const auto over = [&] {
        return own.taken.load(std::memory_order_acquire) || !offers.is_led() ||
               parts_.interruptions.are_pending();
    };
    // What lies on the program's stack here nobody else looks at.
    on_runtime_stack([&] { parts_.endpoint->wait_until(over); });
    if (parts_.interruptions.are_pending()) parts_.interruptions.serve();
}

}  // namespace hiroba::omp
