// SPDX-License-Identifier: BSD-3-Clause
// Role: reductions. Where the compiler hands the values over, they are added up on each node before
// one thread of it goes to the variables. Where an atomic ends a region's function, its term
// travels in the region's join.
// Invariant: the compiler's function runs as a part of the program, on the program's stack.
#include "base/program_call.hpp"
#include "base/thread_context.hpp"
#include "net/net.hpp"
#include "omp/runtime_core.hpp"
#include "omp/team/team.hpp"
#include "omp/thread_part.hpp"

namespace hiroba::omp {

namespace {
/// Whether the thread is in the region itself, not in a task of it, and its join takes terms along.
bool joins_take_terms(const Frame& frame) noexcept {
    return frame.team != nullptr && frame.team->terms != nullptr && !frame.inlined &&
           frame.task == frame.implicit;
}
}  // namespace

// A member of the struct of shared variables that an atomic changes is gcc's copy of a reduction's
// variable: the program has no name for it, so no thread can be waiting for its new value.
// Variables that the program changes by atomics of its own are behind a pointer.
// clang's code says beforehand that an atomic is a reduction's.
bool leave_to_join(const LastAtomic& atomic) noexcept {
    const ThreadState* const thread = thread_part().state;
    if (thread == nullptr || !is_program_call(atomic.return_address)) return false;
    const Frame& frame = *thread->frame;
    if (!joins_take_terms(frame)) return false;
    if (!atomic.announced && atomic.data != reinterpret_cast<std::uintptr_t>(frame.team->fork.data))
        return false;
    return frame.team->terms->add(atomic.term);
}

// The same answer for all threads of a region: a thread that adds under a lock and one that adds by
// an atomic do not see each other.
bool RuntimeCore::announce_term(const void* code, const void* term) noexcept {
    const Frame& frame = *self().frame;
    if (frame.place.team_size == 1 || !joins_take_terms(frame)) return false;
    thread_part().announced = {reinterpret_cast<std::uintptr_t>(code), term};
    return true;
}

void RuntimeCore::withdraw_term() noexcept { thread_part().announced = {}; }

/// When all threads of all nodes have left the region: by the one that led it, as a part of it.
void RuntimeCore::apply_terms() noexcept {
    JoinTerms::List terms;
    const std::size_t count = everywhere_.terms->take(terms);
    for (std::size_t i = 0; i < count; ++i) apply(terms[i]);
}

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

/// Returns when another thread has taken the offer, or no thread leads.
void RuntimeCore::await_offer(const ReductionOffer& own) noexcept {
    const ReductionOffers& offers = everywhere_.reductions;
    const auto over = [&] {
        return own.taken.load(std::memory_order_acquire) || !offers.is_led() ||
               parts_.interruptions.are_pending();
    };
    // No other thread looks at what lies on the program's stack here.
    on_runtime_stack([&] { parts_.endpoint->wait_until(over); });
    if (parts_.interruptions.are_pending()) parts_.interruptions.serve();
}

}  // namespace hiroba::omp
