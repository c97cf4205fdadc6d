// SPDX-License-Identifier: BSD-3-Clause
// Role: locks of the program, known by an address, over all nodes, with release and acquire.
// Invariant: a lock is at one node at a time, whose threads pass it among them as they would a lock
// of one process; between nodes it is passed along a queue of nodes (lock_table.cpp).
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "dsm/sync/debt_payer.hpp"
#include "dsm/sync/interruptions.hpp"

namespace hiroba::net {
class Endpoint;
}

namespace hiroba::dsm {

class SharedMemory;
class SyncTable;

/// Names a lock: an address of the program, or a number below 4096 for the runtime's own.
using LockKey = std::uint64_t;

/// Thread: any. A lock belongs to the job, not to a thread: any thread of any node may unlock it.
class LockTable {
public:
    /// Registers memory; before Endpoint::connect(), attach() after it.
    /// @param payer  outlives the table's last use; started by its owner, after attach()
    static Result<std::unique_ptr<LockTable>> create(net::Endpoint& endpoint, SharedMemory& memory,
                                                     DebtPayer& payer);
    virtual ~LockTable() = default;
    virtual void attach() = 0;
    /// Before the first lock().
    virtual void interrupt_waits_for(Interruptions) noexcept = 0;
    /// How a thread of the program releases when a lock leaves its node: on the runtime stack, with
    /// the lock held. The releaser tells the memory where no other thread of the node runs.
    /// Until this is called, as beside others that run.
    struct Releaser {
        void (*release)(void* context) noexcept = nullptr;
        void* context = nullptr;
    };
    virtual void release_by(Releaser releaser) noexcept = 0;
    /// Where locks lie for which this table has no place: it has one for the first 131,072 that a
    /// job uses, or fewer. `objects` outlives the table's last use, and may be used when it is.
    virtual void overflow_to(SyncTable& objects) noexcept = 0;

    /// Waits for the lock, then acquires: the holder sees all that former holders had done. On the
    /// program's stack, if its handlers are to run meanwhile.
    virtual void lock(LockKey key) noexcept = 0;
    /// As lock(), but false where a thread holds it or waits for it.
    virtual bool try_lock(LockKey key) noexcept = 0;
    /// What this node has written is seen by the next holder. Unlocking a free lock ends the job
    /// with a line.
    virtual void unlock(LockKey key) noexcept = 0;
    enum class Then : std::uint8_t {
        goes_on,
        sleeps,  ///< until another thread has had the lock: a condition variable
    };
    /// As unlock(), but false where no thread holds it.
    /// @param then  what the caller does
    virtual bool unlock_if_held(LockKey key, Then then) noexcept = 0;
    /// Whether a thread holds it, as far as can be told from outside.
    virtual bool is_held(LockKey key) noexcept = 0;
    /// Forgets a free lock (omp_destroy_lock), so that its place can be reused.
    virtual void forget(LockKey key) noexcept = 0;
};

}  // namespace hiroba::dsm
