// SPDX-License-Identifier: BSD-3-Clause
// Role: the program's synchronization objects over all nodes: what POSIX and C say of mutexes,
// read-write locks, condition variables, barriers, semaphores and once, with release and acquire.
// Invariant: an object's own bytes are never written here; they name it, and the caller reads from
// them what it is (type, clock). An object that no thread holds or waits for is not remembered, so
// memory that becomes an object again is a fresh one; semaphores are remembered until destroyed.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "dsm/sync/deadline.hpp"
#include "dsm/sync/sync_cells.hpp"

namespace hiroba::dsm {

enum class MutexType : std::uint8_t {
    normal,
    recursive,
    errorcheck,
    lock  ///< OpenMP's: any thread may unlock it
};
enum class LockMode : std::uint64_t { exclusive, shared };

enum class SyncOutcome : std::uint8_t {
    done,
    last,  ///< a barrier: the one of its threads that may tell
    busy,  ///< not without waiting
    timed_out,
    deadlock,   ///< the caller holds it already
    not_owner,  ///< the caller does not hold it
    overflow    ///< the count is at its end
};

/// How long to wait: not at all, until a deadline, or as long as it takes.
struct Waiting {
    bool allowed = true;
    const Deadline* deadline = nullptr;
};

/// Thread: any, on the program's stack; not in a fault handler. Keys are addresses.
class SyncTable {
public:
    /// Registers memory; before Endpoint::connect(), attach() after it.
    static Result<std::unique_ptr<SyncTable>> create(net::Endpoint& endpoint, SharedMemory& memory,
                                                     DebtPayer& payer);
    SyncTable(net::Endpoint& endpoint, SharedMemory& memory, DebtPayer& payer, gas::Segment segment)
        : memory_(memory), cells_(endpoint, memory, payer, std::move(segment)) {}
    void attach() { cells_.attach(); }
    void interrupt_waits_for(Interruptions interruptions) noexcept {
        cells_.interrupt_waits_for(interruptions);
    }

    /// done, busy, timed_out, deadlock (errorcheck), overflow (recursive).
    SyncOutcome lock_mutex(SyncKey key, MutexType type, Waiting waiting) noexcept;
    /// done or not_owner. Unlocking a free mutex of type normal does nothing, as in libc; one of
    /// type lock has no owner then.
    SyncOutcome unlock_mutex(SyncKey key, MutexType type) noexcept;
    bool is_mutex_held(SyncKey key) noexcept;
    bool is_mutex_mine(SyncKey key) noexcept;

    /// done, busy, timed_out, deadlock. Readers pass waiting writers, so that a reader may become
    /// one again, unless `writers_first`.
    SyncOutcome lock_rwlock(SyncKey key, LockMode mode, bool writers_first,
                            Waiting waiting) noexcept;
    SyncOutcome unlock_rwlock(SyncKey key) noexcept;
    bool is_rwlock_held(SyncKey key) noexcept;

    /// The caller waits from now on, before it gives up the mutex; then await_condition().
    SyncWaiter join_condition(SyncKey key) noexcept;
    /// done or timed_out. Memory is the mutex's business.
    SyncOutcome await_condition(SyncKey key, SyncWaiter waiter, const Deadline* deadline) noexcept;
    void signal_condition(SyncKey key, bool everyone) noexcept;

    /// done or, for one of `threads`, last.
    SyncOutcome pass_barrier(SyncKey key, std::uint32_t threads) noexcept;
    bool is_barrier_used(SyncKey key) noexcept;

    /// `initial`: its value if it was made before this table could be told.
    void make_semaphore(SyncKey key, std::uint32_t value) noexcept;
    void destroy_semaphore(SyncKey key) noexcept;
    SyncOutcome take_semaphore(SyncKey key, std::uint32_t initial, Waiting waiting) noexcept;
    SyncOutcome post_semaphore(SyncKey key, std::uint32_t initial) noexcept;
    std::uint32_t semaphore_value(SyncKey key, std::uint32_t initial) noexcept;

    /// Waits until no other thread is between begin and end, then sees what they did. The caller
    /// looks at the object's bytes: forgoes what is done already, or does it, says so there and
    /// ends. Who finds it done later sees what was done before (see_once(), begin_once()).
    void begin_once(SyncKey key) noexcept;
    void end_once(SyncKey key) noexcept;
    void forgo_once(SyncKey key) noexcept;
    /// For a caller that finds it done in the bytes: sees what was done before they said so.
    void see_once(SyncKey key) noexcept;

    // Futexes. Their memory is the caller's business: it flushes before it wakes and before it
    // looks.
    /// The caller waits from now on, before it looks at the word, for a wake with one of `bits`;
    /// then await_futex(), as often as it likes, and leave_futex().
    SyncWaiter join_futex(SyncKey key, std::uint32_t bits) noexcept;
    /// done: woken; busy: a handler of the program has run; timed_out.
    SyncOutcome await_futex(SyncWaiter waiter, const Deadline& until) noexcept;
    /// The caller waits no longer. True: it was woken first.
    bool leave_futex(SyncKey key, SyncWaiter waiter) noexcept;
    /// Wakes those that have waited longest. @return how many
    std::uint32_t wake_futex(SyncKey key, std::uint32_t bits, std::uint32_t at_most) noexcept;

private:
    using Visit = SyncCells::Visit;
    static void hand_over(Visit& mutex) noexcept;
    static void admit(Visit& rwlock) noexcept;
    static void leave_rwlock(Visit& rwlock) noexcept;
    static void give_one(Visit& semaphore) noexcept;
    static void leave_once(Visit& once) noexcept;
    /// What `is` says of the cell; false where there is none.
    bool ask(SyncKey key, CellKind kind, bool (*is)(const Visit& cell)) noexcept;
    void catch_up(SyncKey key) noexcept;
    bool wait(SyncKey key, CellKind kind, SyncWaiter waiter, const Deadline* deadline) noexcept;
    SyncOutcome try_mutex(SyncKey key, MutexType type, bool waits, SyncWaiter* waiter) noexcept;
    SyncOutcome try_unlock(SyncKey key, MutexType type) noexcept;
    SyncOutcome try_unlock_rwlock(SyncKey key) noexcept;
    SyncOutcome try_post(SyncKey key, std::uint32_t initial) noexcept;

    SharedMemory& memory_;
    SyncCells cells_;
};

}  // namespace hiroba::dsm
