// SPDX-License-Identifier: BSD-3-Clause
// Role: the nodes of a running job as the supervisor sees them, wherever they run: children of the
// launcher (local_nodes.hpp) or of agents on other hosts (hosts/remote_nodes.hpp).
// Invariant: what a node sent on its control channel has reached the control server before
// take_events() tells of the node's end.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hiroba::tools {

/// A node ended, was stopped or goes on; `wait_status` as waitpid() gives it.
struct NodeEvent {
    std::uint32_t rank = 0;
    int wait_status = 0;
    bool untold = false;  ///< it ended, but another wait took its status: the above is made up
};

class NodeSet {
public:
    virtual ~NodeSet() = default;

    virtual std::uint32_t count() const = 0;
    virtual bool alive(std::uint32_t rank) const = 0;
    /// "rank 2 (process 4711)", and the host when there are several.
    virtual std::string name_of(std::uint32_t rank) const = 0;

    /// Adds what poll() is to wait for beside signals and control channels.
    virtual void add_poll_entries(std::vector<pollfd>& entries) const = 0;
    /// All that has happened since the last call.
    virtual std::vector<NodeEvent> take_events() = 0;
    /// Why the job cannot go on, beyond what nodes did: one line; empty while it can.
    virtual const std::string& trouble() const = 0;

    /// Does nothing to a node that has ended.
    virtual void signal(std::uint32_t rank, int number) = 0;
    /// SIGUSR1 for rank 0 if its program has a use for it, else all nodes' stacks are printed.
    virtual void user_signal() = 0;
    virtual void print_stacks() = 0;
    virtual void kill_all() = 0;

    /// Processor time that the kernel has used for the node; 0: unknown.
    virtual std::uint64_t kernel_time_ns(std::uint32_t /*rank*/) const { return 0; }
    /// Processor time of all nodes that run, here or as it was when this was called last.
    virtual std::uint64_t processor_time_ns() = 0;
    /// Says in which calls the program's threads wait.
    virtual void tell_waits() = 0;
    /// Whether rank 0 gets what the terminal sends to the launcher's process group.
    virtual bool shares_terminal() const = 0;
    /// Process number of rank 0 on this host; -1 when it runs elsewhere.
    virtual int first_process() const = 0;
};

}  // namespace hiroba::tools
