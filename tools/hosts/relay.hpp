// SPDX-License-Identifier: BSD-3-Clause
// Role: the agent's work while its nodes run: packets of nodes up to the launcher, the launcher's
// answers and signals down to the nodes.
// Invariant: never blocks. A descriptor that a node gathers stays on this host: it is kept until
// the launcher's answer for its rank comes, and goes to the nodes of this host with that.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "net/bootstrap/host_link.hpp"
#include "tools/run/answer_queue.hpp"
#include "tools/run/nodes.hpp"
#include "tools/run/signals.hpp"
#include "tools/run/symbol.hpp"

namespace hiroba::tools {

class Relay {
public:
    Relay(net::HostLink& link, SignalWatch& signals, std::vector<NodeProcess>& nodes,
          std::uint32_t first_rank);

    /// Serves until the launcher lets the agent go, is lost, or a signal asks this process to end;
    /// no node is left then. Returns the exit status.
    int run();

private:
    static constexpr std::size_t unsent_bytes_max = std::size_t{4} << 20;
    void wait();
    void take_signals();
    void take_frames();
    void take_frame(const net::HostFrame& frame);
    void take_packets();
    void take_packets_of(std::size_t index);
    void pass_on(std::uint32_t rank, net::ControlPacket& packet);
    void append_report(std::uint32_t rank, net::ControlPacket& packet);
    void append_names(std::uint32_t index, net::ControlPacket& packet);
    void answer(const net::HostFrame& frame);
    void signal_node(std::uint32_t rank, int number);
    void reap();
    bool any_alive() const;
    void finish();

    net::HostLink& link_;
    SignalWatch& signals_;
    std::vector<NodeProcess>& nodes_;
    std::uint32_t first_rank_;
    std::vector<AnswerQueue> answers_;   ///< by node of this host
    std::map<std::uint32_t, int> held_;  ///< descriptors gathered, by rank
    AddressNames names_;
    std::map<std::pair<std::uintptr_t, SyncKind>, std::string> places_;  ///< their names
    bool over_ = false;
    int status_ = 0;
};

}  // namespace hiroba::tools
