// SPDX-License-Identifier: BSD-3-Clause
// Role: what this process is in the job, for entry points, which C calls without a context.
// Invariant: only src/abi names it; every layer below takes what it needs as an argument. Put
// together by assemble.hpp, which this knows nothing of.
#pragma once

#include <atomic>
#include <memory>

#include "base/settings.hpp"
#include "dsm/dsm.hpp"
#include "dsm/heap/heap.hpp"
#include "dsm/sync/background_flusher.hpp"
#include "dsm/sync/lock_table.hpp"
#include "dsm/sync/sync_table.hpp"
#include "net/bootstrap/job.hpp"
#include "net/kick/kick.hpp"
#include "net/loss_watch.hpp"
#include "net/net.hpp"
#include "omp/omp.hpp"
#include "omp/process/library_range.hpp"

namespace hiroba::abi {

class RemoteFiles;

/// Everything this process is in the job. `map` to `heap` are null on one node.
struct World {
    net::JobInfo job;
    std::unique_ptr<net::ControlChannel> control;
    std::unique_ptr<net::Endpoint> endpoint;
    std::unique_ptr<net::LossWatch> losses;
    std::unique_ptr<dsm::AddressMap> map;
    omp::LibraryRange library_range;
    std::unique_ptr<dsm::SharedMemory> memory;
    std::unique_ptr<dsm::DebtPayer> payer;
    std::unique_ptr<dsm::LockTable> locks;
    std::unique_ptr<dsm::SyncTable> sync;
    std::unique_ptr<dsm::Heap> heap;
    std::unique_ptr<RemoteFiles> files;
    std::unique_ptr<dsm::BackgroundFlusher> flusher;
    std::unique_ptr<net::kick::Board> board;  ///< null where no peer is mapped
    bool executable_stacks = false;           ///< some loaded object keeps code on them
    std::unique_ptr<omp::Runtime> omp;

    World();
    ~World();
};

namespace detail {
extern constinit std::atomic<World*> world_now [[gnu::visibility("hidden")]];
}

/// The process's world; nullptr before take-over. Async-signal-safe. Never destroyed: library
/// destructors of the program run parallel regions too.
inline World* world() noexcept {
    return detail::world_now.load(std::memory_order_acquire);  // pairs with set_world()
}

/// Makes world() be `node`, which is whole from here on. Once.
void set_world(World* node) noexcept;

}  // namespace hiroba::abi
