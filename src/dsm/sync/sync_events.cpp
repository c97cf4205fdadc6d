// SPDX-License-Identifier: BSD-3-Clause
// Role: condition variables, futexes, barriers, semaphores and once of the program.
// Invariant: a thread that lets others go on has released and published before, under the bucket in
// which those others catch up, or this node owes that; a condition variable alone carries no news,
// its mutex does. State of a barrier: threads that have come. Of a semaphore: 1, amount: its value.
// Of once: the thread that does it.
#include <climits>
#include <mutex>

#include "base/thread_context.hpp"
#include "dsm/sync/sync_table.hpp"

namespace hiroba::dsm {

namespace {
constexpr std::uint64_t semaphore_max = INT_MAX;
}

// --- condition variables -------------------------------------------------------------------------

SyncWaiter SyncTable::join_condition(SyncKey key) noexcept {
    SyncWaiter waiter;
    on_runtime_stack([&] {
        Visit condition{cells_, key, CellKind::condition};
        waiter = condition.enqueue();
    });
    return waiter;
}

SyncOutcome SyncTable::await_condition(SyncKey key, SyncWaiter waiter,
                                       const Deadline* deadline) noexcept {
    return wait(key, CellKind::condition, waiter, deadline) ? SyncOutcome::done
                                                            : SyncOutcome::timed_out;
}

void SyncTable::signal_condition(SyncKey key, bool everyone) noexcept {
    on_runtime_stack([&] {
        Visit condition{cells_, key, CellKind::condition, Visit::Find::existing};
        if (!condition.has_cell()) return;
        if (everyone)
            condition.grant_all();
        else if (condition.has_waiters())
            condition.grant_next();
    });
}

// --- futexes -------------------------------------------------------------------------------------

SyncWaiter SyncTable::join_futex(SyncKey key, std::uint32_t bits) noexcept {
    SyncWaiter waiter;
    on_runtime_stack([&] {
        Visit futex{cells_, key, CellKind::futex};
        waiter = futex.enqueue(bits);
    });
    return waiter;
}

SyncOutcome SyncTable::await_futex(SyncWaiter waiter, const Deadline& until) noexcept {
    bool interrupted = false;
    if (cells_.await(waiter, until, &interrupted)) return SyncOutcome::done;
    return interrupted ? SyncOutcome::busy : SyncOutcome::timed_out;
}

bool SyncTable::leave_futex(SyncKey key, SyncWaiter waiter) noexcept {
    bool is_woken = false;
    on_runtime_stack([&] {
        Visit futex{cells_, key, CellKind::futex};
        is_woken = !futex.withdraw(waiter);
    });
    cells_.give_back(waiter);
    return is_woken;
}

std::uint32_t SyncTable::wake_futex(SyncKey key, std::uint32_t bits,
                                    std::uint32_t at_most) noexcept {
    std::uint32_t count = 0;
    on_runtime_stack([&] {
        Visit futex{cells_, key, CellKind::futex, Visit::Find::existing};
        if (futex.has_cell()) count = futex.grant_some(bits, at_most);
    });
    return count;
}

// --- barriers ------------------------------------------------------------------------------------

SyncOutcome SyncTable::pass_barrier(SyncKey key, std::uint32_t threads) noexcept {
    SyncWaiter waiter;
    on_runtime_stack([&] {
        memory_.release(Others::running);
        Visit barrier{cells_, key, CellKind::barrier};
        barrier.catch_up();
        barrier.publish();
        const std::uint64_t come = barrier.state() + 1;
        if (come < threads) {
            barrier.set_state(come);
            waiter = barrier.enqueue();
        } else {
            barrier.set_state(0);
            barrier.grant_all();
        }
    });
    if (!waiter) return SyncOutcome::last;
    wait(key, CellKind::barrier, waiter, nullptr);
    catch_up(key);
    return SyncOutcome::done;
}

bool SyncTable::is_barrier_used(SyncKey key) noexcept {
    return ask(key, CellKind::barrier, [](const Visit& barrier) { return barrier.state() != 0; });
}

// --- semaphores ----------------------------------------------------------------------------------

void SyncTable::make_semaphore(SyncKey key, std::uint32_t value) noexcept {
    on_runtime_stack([&] {
        Visit semaphore{cells_, key, CellKind::semaphore};
        semaphore.set_state(1);
        semaphore.set_amount(value);
    });
}

void SyncTable::destroy_semaphore(SyncKey key) noexcept {
    on_runtime_stack([&] {
        Visit semaphore{cells_, key, CellKind::semaphore, Visit::Find::existing};
        if (!semaphore.has_cell()) return;
        semaphore.set_state(0);
        semaphore.set_amount(0);
    });
}

namespace {
/// One made before this node took the process over has only its bytes to tell its value.
void make_known(SyncCells::Visit& semaphore, std::uint32_t initial) noexcept {
    if (semaphore.state() != 0) return;
    semaphore.set_state(1);
    semaphore.set_amount(initial);
}
}  // namespace

SyncOutcome SyncTable::take_semaphore(SyncKey key, std::uint32_t initial,
                                      Waiting waiting) noexcept {
    SyncWaiter waiter;
    SyncOutcome outcome = SyncOutcome::busy;
    on_runtime_stack([&] {
        Visit semaphore{cells_, key, CellKind::semaphore};
        make_known(semaphore, initial);
        if (semaphore.amount() > 0) {
            semaphore.set_amount(semaphore.amount() - 1);
            semaphore.catch_up();
            outcome = SyncOutcome::done;
        } else if (waiting.allowed) {
            waiter = semaphore.enqueue();
        }
    });
    if (!waiter) return outcome;
    if (!wait(key, CellKind::semaphore, waiter, waiting.deadline)) return SyncOutcome::timed_out;
    catch_up(key);
    return SyncOutcome::done;
}

void SyncTable::give_one(Visit& semaphore) noexcept {
    if (semaphore.has_waiters())
        semaphore.grant_next();
    else
        semaphore.set_amount(semaphore.amount() + 1);
}

/// busy: as of try_unlock().
SyncOutcome SyncTable::try_post(SyncKey key, std::uint32_t initial) noexcept {
    Visit semaphore{cells_, key, CellKind::semaphore};
    make_known(semaphore, initial);
    if (semaphore.amount() == semaphore_max) return SyncOutcome::overflow;
    if (!semaphore.owe_release()) return SyncOutcome::busy;
    give_one(semaphore);
    return SyncOutcome::done;
}

SyncOutcome SyncTable::post_semaphore(SyncKey key, std::uint32_t initial) noexcept {
    SyncOutcome outcome{};
    on_runtime_stack([&] {
        outcome = try_post(key, initial);
        if (outcome != SyncOutcome::busy) return;
        memory_.release(Others::running);
        Visit semaphore{cells_, key, CellKind::semaphore};
        make_known(semaphore, initial);
        // Others may have posted meanwhile, or have destroyed it.
        outcome = semaphore.amount() == semaphore_max ? SyncOutcome::overflow : SyncOutcome::done;
        semaphore.catch_up();
        semaphore.publish();
        if (outcome == SyncOutcome::done) give_one(semaphore);
    });
    return outcome;
}

std::uint32_t SyncTable::semaphore_value(SyncKey key, std::uint32_t initial) noexcept {
    std::uint64_t value = 0;
    on_runtime_stack([&] {
        Visit semaphore{cells_, key, CellKind::semaphore};
        make_known(semaphore, initial);
        value = semaphore.amount();
    });
    return static_cast<std::uint32_t>(value);
}

// --- once ----------------------------------------------------------------------------------------

void SyncTable::begin_once(SyncKey key) noexcept {
    for (;;) {
        SyncWaiter waiter;
        on_runtime_stack([&] {
            Visit once{cells_, key, CellKind::once};
            if (once.state() != 0) {
                waiter = once.enqueue();
                return;
            }
            once.set_state(cells_.self());
            once.catch_up();
        });
        if (!waiter) return;
        wait(key, CellKind::once, waiter, nullptr);
    }
}

void SyncTable::leave_once(Visit& once) noexcept {
    once.set_state(0);
    once.grant_all();
}

void SyncTable::end_once(SyncKey key) noexcept {
    on_runtime_stack([&] {
        {
            Visit once{cells_, key, CellKind::once};
            if (once.owe_release()) return leave_once(once);
        }
        memory_.release(Others::running);
        Visit once{cells_, key, CellKind::once};
        once.catch_up();
        once.publish();
        leave_once(once);
    });
}

void SyncTable::forgo_once(SyncKey key) noexcept {
    on_runtime_stack([&] {
        Visit once{cells_, key, CellKind::once};
        leave_once(once);
    });
}

void SyncTable::see_once(SyncKey key) noexcept { catch_up(key); }

}  // namespace hiroba::dsm
