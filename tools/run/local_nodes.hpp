// SPDX-License-Identifier: BSD-3-Clause
// Role: the nodes of a job on this host alone: children of the launcher.
#pragma once

#include <string>
#include <vector>

#include "tools/run/node_set.hpp"
#include "tools/run/nodes.hpp"

namespace hiroba::tools {

class LocalNodes final : public NodeSet {
public:
    /// @param nodes  started, by rank from 0
    explicit LocalNodes(std::vector<NodeProcess> nodes) : nodes_(std::move(nodes)) {}

    std::uint32_t count() const override { return static_cast<std::uint32_t>(nodes_.size()); }
    bool alive(std::uint32_t rank) const override { return nodes_[rank].alive; }
    std::string name_of(std::uint32_t rank) const override;
    void add_poll_entries(std::vector<pollfd>&) const override {}
    std::vector<NodeEvent> take_events() override;
    const std::string& trouble() const override { return no_trouble_; }
    void signal(std::uint32_t rank, int number) override;
    void user_signal() override;
    void print_stacks() override;
    void kill_all() override { kill_nodes(nodes_); }
    std::uint64_t kernel_time_ns(std::uint32_t rank) const override;
    std::uint64_t processor_time_ns() override;
    void tell_waits() override;
    bool shares_terminal() const override { return true; }
    pid_t process_of(std::uint32_t rank) const { return nodes_[rank].pid; }
    int first_process() const override { return nodes_[0].pid; }

private:
    std::vector<NodeProcess> nodes_;
    std::string no_trouble_;
};

}  // namespace hiroba::tools
