// SPDX-License-Identifier: BSD-3-Clause
// Role: mutexes and read-write locks of the program.
// Invariant: the thread that gives up a lock hands it to the thread that has waited longest: no
// thread overtakes, no wake-up can be lost. State of a mutex: its holder, amount: how often. State
// of a read-write lock: its writer, amount: its readers.
#include <mutex>

#include "base/thread_context.hpp"
#include "dsm/sync/sync_table.hpp"

namespace hiroba::dsm {

namespace {
constexpr std::uint64_t recursion_max = 0xFFFF'FFFFu;
}

Result<std::unique_ptr<SyncTable>> SyncTable::create(net::Endpoint& endpoint, SharedMemory& memory,
                                                     DebtPayer& payer) {
    auto segment = gas::Segment::allocate(endpoint, SyncCells::segment_bytes(memory));
    if (!segment) return segment.error();
    return std::make_unique<SyncTable>(endpoint, memory, payer, std::move(*segment));
}

void SyncTable::catch_up(SyncKey key) noexcept {
    if (cells_.is_caught_up(key)) return;
    on_runtime_stack([&] {
        Visit visit{cells_, key, CellKind::none, Visit::Find::nothing};
        visit.catch_up();
    });
}

/// After the caller has queued up: true once it was granted what it waits for, false when time was
/// up first; then it no longer waits.
bool SyncTable::wait(SyncKey key, CellKind kind, SyncWaiter waiter,
                     const Deadline* deadline) noexcept {
    bool is_granted = cells_.await(waiter, deadline);
    if (!is_granted) {
        on_runtime_stack([&] {
            Visit visit{cells_, key, kind, Visit::Find::existing_or_new};
            is_granted = !visit.withdraw(waiter);
            // A writer that gives up may have been what kept readers out.
            if (!is_granted && kind == CellKind::rwlock) admit(visit);
        });
    }
    cells_.give_back(waiter);
    return is_granted;
}

// --- mutexes -------------------------------------------------------------------------------------

SyncOutcome SyncTable::try_mutex(SyncKey key, MutexType type, bool waits,
                                 SyncWaiter* waiter) noexcept {
    const SyncThread self = cells_.self();
    Visit mutex{cells_, key, CellKind::mutex};
    const SyncThread holder = mutex.state();
    if (holder == 0) {
        mutex.set_state(self);
        mutex.set_amount(1);
        mutex.catch_up();
        return SyncOutcome::done;
    }
    if (holder == self && type == MutexType::recursive) {
        if (mutex.amount() == recursion_max) return SyncOutcome::overflow;
        mutex.set_amount(mutex.amount() + 1);
        return SyncOutcome::done;
    }
    if (!waits) return SyncOutcome::busy;
    if (holder == self && type == MutexType::errorcheck) return SyncOutcome::deadlock;
    *waiter = mutex.enqueue();
    return SyncOutcome::busy;
}

SyncOutcome SyncTable::lock_mutex(SyncKey key, MutexType type, Waiting waiting) noexcept {
    SyncWaiter waiter;
    SyncOutcome outcome{};
    on_runtime_stack([&] { outcome = try_mutex(key, type, waiting.allowed, &waiter); });
    if (!waiter) return outcome;
    if (!wait(key, CellKind::mutex, waiter, waiting.deadline)) return SyncOutcome::timed_out;
    catch_up(key);
    return SyncOutcome::done;
}

void SyncTable::hand_over(Visit& mutex) noexcept {
    if (mutex.has_waiters()) {
        // The waiter that gets it comes back only through the bucket, which is held.
        mutex.set_amount(1);
        mutex.set_state(mutex.grant_next());
    } else {
        mutex.set_amount(0);
        mutex.set_state(0);
    }
}

/// busy: others need what this node has written, so it must release first.
SyncOutcome SyncTable::try_unlock(SyncKey key, MutexType type) noexcept {
    Visit mutex{cells_, key, CellKind::mutex};
    const SyncThread holder = mutex.state();
    if (holder == 0) return type == MutexType::normal ? SyncOutcome::done : SyncOutcome::not_owner;
    const bool anyones = type == MutexType::normal || type == MutexType::lock;
    if (!anyones && holder != cells_.self()) return SyncOutcome::not_owner;
    if (mutex.amount() > 1) {
        mutex.set_amount(mutex.amount() - 1);
        return SyncOutcome::done;
    }
    if (!mutex.owe_release()) return SyncOutcome::busy;
    hand_over(mutex);
    return SyncOutcome::done;
}

SyncOutcome SyncTable::unlock_mutex(SyncKey key, MutexType type) noexcept {
    SyncOutcome outcome{};
    on_runtime_stack([&] {
        outcome = try_unlock(key, type);
        if (outcome != SyncOutcome::busy) return;
        memory_.release(Others::running);
        Visit mutex{cells_, key, CellKind::mutex};
        mutex.catch_up();
        mutex.publish();
        hand_over(mutex);
        outcome = SyncOutcome::done;
    });
    return outcome;
}

bool SyncTable::ask(SyncKey key, CellKind kind, bool (*is)(const Visit& cell)) noexcept {
    bool answer = false;
    on_runtime_stack([&] {
        const Visit cell{cells_, key, kind, Visit::Find::existing};
        answer = cell.has_cell() && is(cell);
    });
    return answer;
}

bool SyncTable::is_mutex_held(SyncKey key) noexcept {
    return ask(key, CellKind::mutex, [](const Visit& mutex) { return mutex.state() != 0; });
}

bool SyncTable::is_mutex_mine(SyncKey key) noexcept {
    bool mine = false;
    on_runtime_stack([&] {
        const Visit mutex{cells_, key, CellKind::mutex, Visit::Find::existing};
        mine = mutex.has_cell() && mutex.state() == cells_.self();
    });
    return mine;
}

// --- read-write locks ----------------------------------------------------------------------------

/// Lets in the waiters that may enter now: one writer, or readers up to the next writer.
void SyncTable::admit(Visit& rwlock) noexcept {
    constexpr auto shared = static_cast<std::uint64_t>(LockMode::shared);
    while (rwlock.has_waiters() && rwlock.state() == 0) {
        if (rwlock.next_mode() == shared) {
            rwlock.set_amount(rwlock.amount() + 1);
            rwlock.grant_next();
        } else if (rwlock.amount() == 0) {
            rwlock.set_state(rwlock.grant_next());
        } else {
            return;
        }
    }
}

SyncOutcome SyncTable::lock_rwlock(SyncKey key, LockMode mode, bool writers_first,
                                   Waiting waiting) noexcept {
    SyncWaiter waiter;
    SyncOutcome outcome = SyncOutcome::done;
    on_runtime_stack([&] {
        const SyncThread self = cells_.self();
        Visit rwlock{cells_, key, CellKind::rwlock};
        const bool free = mode == LockMode::shared
                              ? rwlock.state() == 0 && !(writers_first && rwlock.has_waiters())
                              : rwlock.state() == 0 && rwlock.amount() == 0;
        if (!free) {
            outcome = SyncOutcome::busy;
            if (!waiting.allowed) return;
            if (rwlock.state() == self) outcome = SyncOutcome::deadlock;
            if (rwlock.state() != self) waiter = rwlock.enqueue(static_cast<std::uint64_t>(mode));
            return;
        }
        if (mode == LockMode::shared)
            rwlock.set_amount(rwlock.amount() + 1);
        else
            rwlock.set_state(self);
        rwlock.catch_up();
    });
    if (!waiter) return outcome;
    if (!wait(key, CellKind::rwlock, waiter, waiting.deadline)) return SyncOutcome::timed_out;
    catch_up(key);
    return SyncOutcome::done;
}

void SyncTable::leave_rwlock(Visit& rwlock) noexcept {
    if (rwlock.state() != 0)
        rwlock.set_state(0);
    else
        rwlock.set_amount(rwlock.amount() - 1);
    admit(rwlock);
}

/// busy: as of try_unlock().
SyncOutcome SyncTable::try_unlock_rwlock(SyncKey key) noexcept {
    Visit rwlock{cells_, key, CellKind::rwlock};
    if (rwlock.state() == 0 && rwlock.amount() == 0) return SyncOutcome::not_owner;
    if (!rwlock.owe_release()) return SyncOutcome::busy;
    leave_rwlock(rwlock);
    return SyncOutcome::done;
}

// A reader releases too, or owes it: the writer after it must see what it wrote elsewhere.
SyncOutcome SyncTable::unlock_rwlock(SyncKey key) noexcept {
    SyncOutcome outcome{};
    on_runtime_stack([&] {
        outcome = try_unlock_rwlock(key);
        if (outcome != SyncOutcome::busy) return;
        memory_.release(Others::running);
        Visit rwlock{cells_, key, CellKind::rwlock};
        rwlock.catch_up();
        rwlock.publish();
        leave_rwlock(rwlock);
        outcome = SyncOutcome::done;
    });
    return outcome;
}

bool SyncTable::is_rwlock_held(SyncKey key) noexcept {
    return ask(key, CellKind::rwlock,
               [](const Visit& rwlock) { return rwlock.state() != 0 || rwlock.amount() != 0; });
}

}  // namespace hiroba::dsm
