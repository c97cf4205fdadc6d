// SPDX-License-Identifier: BSD-3-Clause
// Role: simulated nodes with shared memory, and what their program's threads do with it: accesses,
// locks, atomics, barriers, fork and join.
// Invariant: the engine, the lock table and all below them are the real ones; only pages
// (software_engine.hpp) and the wire are simulated. Nodes are destroyed after the run, wherever
// their threads stood.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "dsm/dsm.hpp"
#include "dsm/sync/lock_table.hpp"
#include "dsm/sync/sync_table.hpp"
#include "memory_programs/news_exchange.hpp"
#include "memory_programs/program_node.hpp"
#include "sim/dsm/node_view.hpp"
#include "sim/dsm/software_engine.hpp"
#include "sim/sim_job.hpp"

namespace hiroba::sim_test {

class ClusterNode;

struct ClusterOptions {
    std::uint32_t nodes = 3;
    std::uint32_t threads_of_first = 2;  ///< of node 0; every other node has one
    bool with_locks = true;              ///< a lock table
    bool with_objects = false;           ///< and a table of POSIX's objects
    bool with_payers = true;             ///< a thread of each node that calls pay()
    /// Called by each payer before all else; nullptr: it looks every `pay_ns`.
    std::function<void(ClusterNode& node)> payer_comes;
    dsm::MemoryOptions memory;
    SoftwareEngineOptions engine;
    net::sim::SchedulerOptions scheduling;
    net::sim::NetworkOptions wire;
};

class Cluster;

/// One node as its program's threads see it.
class ClusterNode final : public ProgramNode {
public:
    ClusterNode(Cluster& cluster, NodeId self);

    NodeId self() const noexcept override { return self_; }
    dsm::SharedMemory& memory() noexcept override { return *memory_; }
    dsm::LockTable& locks() noexcept override { return *locks_; }
    dsm::SyncTable& objects() noexcept { return *objects_; }
    std::uint64_t time_ns() noexcept override;
    SoftwareEngine& engine() noexcept { return *engine_; }
    dsm::NodeView coherence() const noexcept {
        return dsm::NodeView{static_cast<dsm::Node&>(*memory_)};
    }
    net::Endpoint& endpoint() noexcept { return *endpoint_; }

    std::uint64_t load(std::uintptr_t address, std::size_t bytes) noexcept override;
    void store(std::uintptr_t address, std::size_t bytes, std::uint64_t value) noexcept override;
    void lend_to_kernel(std::uintptr_t address, bool lent) noexcept override;
    bool kernel_fills(std::uintptr_t address, std::size_t bytes,
                      std::uint64_t value) noexcept override;
    bool kernel_reads(std::uintptr_t address, std::size_t bytes,
                      std::uint64_t& value) noexcept override;
    void barrier(std::uint32_t threads) noexcept override;
    void serial(std::uint32_t threads, const std::function<void()>& alone) noexcept override;

private:
    friend class Cluster;
    void connect();
    void stop();
    /// True for the last thread of the node to come; it says leave() when the others may go.
    bool come(std::uint32_t threads) noexcept;
    void leave() noexcept;
    dsm::Others at_release() noexcept;

    Cluster& cluster_;
    NodeId self_;
    std::unique_ptr<net::Endpoint> endpoint_;
    SoftwareEngine* engine_ = nullptr;
    std::unique_ptr<dsm::SharedMemory> memory_;
    std::unique_ptr<dsm::DebtPayer> payer_;  ///< of the locks
    std::unique_ptr<dsm::LockTable> locks_;
    std::unique_ptr<dsm::SyncTable> objects_;
    std::unique_ptr<NewsExchange> news_;
    std::uint32_t come_ = 0;
    std::uint64_t meetings_ = 0;
    std::vector<net::sim::Fiber*> waiting_;
};

class Cluster {
public:
    Cluster(net::sim::FiberStacks& stacks, const ClusterOptions& options);
    ~Cluster();

    const ClusterOptions& options() const noexcept { return options_; }
    SimJob& job() noexcept { return job_; }
    net::sim::Scheduler& scheduler() noexcept { return job_.scheduler(); }
    const dsm::AddressMap& map() const noexcept { return map_; }
    ClusterNode& node(std::uint32_t rank) noexcept { return *nodes_[rank]; }
    std::uint32_t threads() const noexcept {
        return options_.nodes - 1 + options_.threads_of_first;
    }
    std::uint32_t node_of(std::uint32_t thread) const noexcept {
        const std::uint32_t first = options_.threads_of_first;
        return thread < first ? 0 : thread - first + 1;
    }
    std::uint32_t threads_of(std::uint32_t rank) const noexcept {
        return rank == 0 ? options_.threads_of_first : 1;
    }

    /// Runs program(thread, node) as every thread, all nodes being connected.
    net::sim::Scheduler::Outcome run(
        const std::function<void(std::uint32_t thread, ClusterNode& node)>& program);

    /// How often all nodes together took each row of the block protocol.
    dsm::NodeView::RowCounts rows() const;

private:
    ClusterOptions options_;
    SimJob job_;
    dsm::AddressMap map_;
    std::vector<std::unique_ptr<ClusterNode>> nodes_;
    void pay_until_the_end(ClusterNode& node);

    static constexpr std::uint64_t pay_ns = 2'000;
    std::uint32_t running_ = 0;
};

}  // namespace hiroba::sim_test
