// SPDX-License-Identifier: BSD-3-Clause
// Role: the nodes of a job on several hosts as the launcher sees them: commands that carry agents,
// connections to the agents, and what these tell. Starting is remote_start.cpp, running
// remote_nodes.cpp.
// Invariant: a host whose agent is lost has no living nodes, as far as this side can know. Never
// blocks but in start() and finish(), which have time limits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/bootstrap/host_link.hpp"
#include "tools/hosts/feed.hpp"
#include "tools/hosts/host_command.hpp"
#include "tools/hosts/host_list.hpp"
#include "tools/hosts/rendezvous.hpp"
#include "tools/hosts/startup_packet.hpp"
#include "tools/run/control_server.hpp"
#include "tools/run/node_set.hpp"
#include "tools/run/signals.hpp"

namespace hiroba::tools {

/// What the launcher asks of its hosts.
struct HostsRequest {
    std::vector<HostPlan> hosts;
    std::string command;         ///< ssh, or what stands for it
    std::string runtime_folder;  ///< as of StartupPacket
    /// Agents are started by this process's starter; this host's is started here.
    bool agents_come = false;
    RunPlan plan;                     ///< of the job; threads_per_node 0: as the hosts have cores
    bool verbose = false;             ///< say where everything runs
    std::uint64_t start_limit_s = 0;  ///< for all agents to come
    std::uint64_t silence_limit_s = 0;
};

class RemoteNodes final : public NodeSet {
public:
    /// @param rendezvous  where agents come to, if they were told before; else it is opened here
    RemoteNodes(HostsRequest request, const JobIdentity& job, SignalWatch& signals,
                std::optional<Rendezvous> rendezvous = {});
    ~RemoteNodes() override;

    /// Brings the agents up and has them start the nodes. Nothing on success; otherwise the exit
    /// status, after one line that names the host, and nothing runs any more.
    std::optional<int> start();
    /// Where packets go; before the first take_events().
    void bind(ControlServer& control) { control_ = &control; }
    /// Sends an answer to every host.
    void broadcast(const net::ControlHeader& header, Bytes body);
    /// Lets the agents go and waits for the last output of their commands.
    void finish();
    /// Threads of each node, as agreed.
    std::uint32_t threads_per_node() const { return request_.plan.threads_per_node; }

    std::uint32_t count() const override { return static_cast<std::uint32_t>(nodes_.size()); }
    bool alive(std::uint32_t rank) const override { return nodes_[rank].alive; }
    std::string name_of(std::uint32_t rank) const override;
    void add_poll_entries(std::vector<pollfd>& entries) const override;
    std::vector<NodeEvent> take_events() override;
    const std::string& trouble() const override { return trouble_; }
    void signal(std::uint32_t rank, int number) override;
    void user_signal() override;
    void print_stacks() override;
    void tell_waits() override;
    std::uint64_t processor_time_ns() override;
    void kill_all() override;
    bool shares_terminal() const override { return false; }
    int first_process() const override { return -1; }

private:
    enum class Stage { called, joined, ready, started };
    struct Host {
        HostPlan plan;
        std::string command_text;  ///< for lines
        std::string trial_text;    ///< what the user may try
        pid_t command = -1;        ///< -1: has ended
        Stage stage = Stage::called;
        std::optional<Feed> feed;
        std::optional<net::HostLink> link;
        std::string address;  ///< numeric, as this launcher sees it
        net::HelloBody hello;
        std::uint64_t used_ns = 0;  ///< processor time, as told last
    };
    struct RemoteNode {
        std::uint32_t host = 0;
        std::uint32_t process = 0;
        bool alive = false;
    };

    // --- starting: each returns false once failed_ says why
    bool call_hosts();
    bool await_stage(Stage stage, std::uint64_t limit_ns);
    bool check_hosts();
    bool check_addresses();
    std::string address_for(const Host& host, const Host& other) const;
    void send_peers();
    void say_places() const;
    StartupPacket startup_packet_for(std::size_t index, std::uint16_t port) const;
    void take_arrivals();
    bool take_start_signals();
    void fail(int status, const std::string& line);

    // --- running
    void serve_links();
    void take_frame(Host& host, const net::HostFrame& frame);
    void take_node_frame(Host& host, const net::HostFrame& frame);
    void take_started(Host& host, const net::HostFrame& frame);
    void reap_commands();
    void command_ended(Host& host, int wait_status);
    void lose(Host& host, const std::string& why);
    void send_all(net::HostKind kind);
    bool any_alive(const Host& host) const;
    std::string ranks_of(const Host& host) const;
    std::string missing(Stage stage) const;

    HostsRequest request_;
    JobIdentity job_;
    SignalWatch& signals_;
    ControlServer* control_ = nullptr;
    std::optional<Rendezvous> rendezvous_;
    std::vector<Host> hosts_;
    std::vector<RemoteNode> nodes_;  ///< by rank
    std::vector<NodeEvent> events_;
    std::string trouble_;
    std::optional<int> failed_;  ///< exit status; its line has been said
    bool ending_ = false;        ///< hosts may go
    bool killed_ = false;        ///< the job did not end by itself
};

}  // namespace hiroba::tools
