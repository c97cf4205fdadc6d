// SPDX-License-Identifier: BSD-3-Clause
// Role: locks of the program, known by an address, over all nodes, with release and acquire.
// Invariant: a lock's state lies in registered memory of the node its key hashes to and is reached
// one-sidedly; waiters queue (MCS) and wait on a word of their own node.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "dsm/sync/interruptions.hpp"

namespace hiroba::net {
class Endpoint;
}

namespace hiroba::dsm {

class SharedMemory;

/// Names a lock: an address of the program, or a number below 4096 for the runtime's own.
using LockKey = std::uint64_t;

/// Thread: any. A lock belongs to the job, not to a thread: whoever holds it may unlock it.
class LockTable {
public:
    /// Registers memory; before Endpoint::connect(), attach() after it.
    static Result<std::unique_ptr<LockTable>> create(net::Endpoint& endpoint, SharedMemory& memory);
    virtual ~LockTable() = default;
    virtual void attach() = 0;
    /// Before the first lock().
    virtual void interrupt_waits_for(Interruptions) noexcept = 0;

    /// Waits for the lock, then acquires: the holder sees all that former holders had done. On the
    /// program's stack, if its handlers are to run meanwhile.
    virtual void lock(LockKey key) noexcept = 0;
    virtual bool try_lock(LockKey key) noexcept = 0;
    /// Releases, then hands over. Unlocking a free lock is fatal with the key.
    virtual void unlock(LockKey key) noexcept = 0;
    /// Forgets a free lock (omp_destroy_lock), so that its place can be reused.
    virtual void forget(LockKey key) noexcept = 0;
};

}  // namespace hiroba::dsm
