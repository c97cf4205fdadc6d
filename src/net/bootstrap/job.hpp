// SPDX-License-Identifier: BSD-3-Clause
// Role: who this process is in the job, and the control channel to the launcher.
// Invariant: one control channel per node, a UNIX seqpacket socket inherited from the launcher;
// the launcher answers a collective only after all nodes have called it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/thread_context.hpp"

namespace hiroba::net {

/// What the launcher told this process (HIROBA_JOB_* variables).
struct JobInfo {
    NodeId self;
    std::uint32_t nodes = 1;
    std::uint32_t threads_per_node = 1;
    int control_fd = -1;             ///< -1: alone, no launcher
    std::uint64_t job_key = 0;       ///< random, the same on every node
    std::uint64_t job_key_high = 0;  ///< 64 bits more of it
    std::uint32_t hosts = 1;         ///< over which the nodes are spread
    std::string network = {};        ///< numeric address that peers reach this host by; empty: any
};

/// One record of a job's communication, sent to the launcher at the end for HIROBA_STATS.
struct NamedCount {
    char name[32];
    std::uint64_t value;
};

/// Reads HIROBA_JOB_*; a process not started by `hiroba run` is a job of one node. Tells the
/// launcher that the runtime is attached, and closes the control channel to programs that this
/// process executes. A variable that is missing or no number is a usage error naming it.
Result<JobInfo> read_job_info();

/// Makes `environment` (as environ) what the user's shell had given: removes HIROBA_JOB_* and puts
/// back the user's own LD_PRELOAD, LD_BIND_NOW and GLIBC_TUNABLES. In place: entries are dropped or
/// point into strings that were there; nothing is allocated. Harmless without a launcher.
void restore_user_environment(char** environment) noexcept;

/// The node's side of the control channel. Thread: all collectives from one thread, before the
/// program starts; `report_*` from any thread and async-signal-safe.
class ControlChannel {
public:
    explicit ControlChannel(const JobInfo& job) : job_(job) {}

    /// Gathers equally sized `mine` (at most gather_bytes_max) and one file descriptor (or -1) from
    /// every node, in rank order; a node that gave -1 is -1 in the answer.
    /// Blocks until all nodes have called it; fails with peer_lost when the launcher is gone.
    static constexpr std::size_t gather_bytes_max = 65536;
    struct Gathered {
        std::vector<std::vector<std::byte>> bytes;
        std::vector<int> fds;  ///< owned by the caller; own entry is a duplicate
    };
    Result<Gathered> all_gather(Bytes mine, int fd);

    /// Blocks until every node has arrived.
    Result<void> barrier();

    /// Asks the launcher to end the whole job with `status` (0 to 255) at once.
    void request_exit(int status) noexcept;

    /// Sends a node's counters; printed as one table by the launcher when HIROBA_STATS is set.
    void report_counts(const NamedCount* counts, std::size_t count) noexcept;

    /// Sends what a node counted at one place; `count` up to place_counts_max.
    void report_place(const SyncPlace& place, const NamedCount* counts, std::size_t count) noexcept;
    static constexpr std::size_t place_counts_max = 40;

    /// Reports two nodes having written the same `bytes` bytes at `address` between two
    /// synchronizations; the launcher names the symbol and prints each place once.
    /// @param place  where `writer` synchronized, which is when it was seen
    /// @param stack_of  the thread of the job on whose stack it is, if it is on one
    void report_race(std::uint64_t address, std::uint32_t bytes, NodeId writer, NodeId other,
                     const SyncPlace& place = {},
                     std::optional<std::uint32_t> stack_of = {}) noexcept;

    /// Tells the launcher in how many parallel regions this node's threads have taken part, and
    /// that the node now leaves, with `status`: only after this is an exit with status 0 orderly.
    void report_participation(std::uint64_t regions, int status) noexcept;
    /// The same for a node of a library that has no parallel regions.
    void report_leaving() noexcept { report_participation(0, 0); }

private:
    JobInfo job_;
};

}  // namespace hiroba::net
