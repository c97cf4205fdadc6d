// SPDX-License-Identifier: BSD-3-Clause
// Role: the composition root: the one place of a process where its node is put together.
// Invariant: only src/abi names it; every layer below takes what it needs as an argument.
#pragma once

#include <memory>
#include <span>

#include "abi/libc/files/remote_files.hpp"
#include "base/settings.hpp"
#include "dsm/dsm.hpp"
#include "dsm/heap/heap.hpp"
#include "dsm/sync/lock_table.hpp"
#include "dsm/sync/publisher.hpp"
#include "dsm/sync/sync_table.hpp"
#include "net/bootstrap/job.hpp"
#include "net/kick/kick.hpp"
#include "net/loss_watch.hpp"
#include "net/net.hpp"
#include "omp/omp.hpp"
#include "omp/process/library_place.hpp"
#include "omp/process/loaded_objects.hpp"

namespace hiroba::abi {

/// Everything this process is in the job. `map` to `heap` are null on one node.
struct World {
    net::JobInfo job;
    std::unique_ptr<net::ControlChannel> control;
    std::unique_ptr<net::Endpoint> endpoint;
    std::unique_ptr<net::LossWatch> losses;
    std::unique_ptr<dsm::AddressMap> map;
    omp::LibraryPlace library_place;
    std::unique_ptr<dsm::SharedMemory> memory;
    std::unique_ptr<dsm::DebtPayer> payer;
    std::unique_ptr<dsm::LockTable> locks;
    std::unique_ptr<dsm::SyncTable> sync;
    std::unique_ptr<dsm::Heap> heap;
    std::unique_ptr<RemoteFiles> files;
    std::unique_ptr<dsm::Publisher> publisher;
    std::unique_ptr<net::kick::Board> board;  ///< null where no peer is mapped
    bool executable_stacks = false;           ///< some loaded object keeps code on them
    std::unique_ptr<omp::Runtime> omp;
};

/// The process's world; nullptr before take-over. Async-signal-safe. Never destroyed: library
/// destructors of the program run parallel regions too.
World* world() noexcept;

/// The sizes of the global address space for this job, from the settings and the stack limit.
/// Does not allocate, except for an error's text. `block_bytes` is left at its default.
Result<dsm::SpaceShape> space_shape(std::uint32_t nodes, std::uint32_t threads_per_node);

/// Puts a node that is alone together: OpenMP on the process's own memory.
Result<void> assemble_alone(const net::JobInfo& job);

/// Puts one of several nodes together and makes the program's memory global. Collective. On return
/// world() is set, and every node has come as far. Fails with one line fit for die().
/// @param objects  everything loaded; its global part becomes images of the address map
Result<void> assemble_node(const net::JobInfo& job, std::span<const omp::LoadedObject> objects);

/// Makes global what the loader has mapped since: libraries, in the one order all nodes share, node
/// 0 first. Rewrites their atomics. Before any of their code runs here.
Result<void> adopt_libraries(World& node, std::span<const omp::LoadedObject> objects);

/// The process exit status that goes with an error.
int exit_status(const Error& error) noexcept;

}  // namespace hiroba::abi
