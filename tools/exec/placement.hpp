// SPDX-License-Identifier: BSD-3-Clause
// Role: what the processes of `hiroba exec` tell each other, and what follows from it: which hosts
// there are, which ranks they carry, which process leads.
// Invariant: pure; every process computes the same from the same cards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "tools/hosts/host_list.hpp"

namespace hiroba::tools {

/// One process of the outer launcher.
struct ExecCard {
    std::string build;       ///< build id of its hiroba
    std::uint64_t host = 0;  ///< net::this_host()
    std::string host_name;
    std::string cpus;  ///< it may run on, as "0,2-5"
    // Process 0 alone has these:
    std::uint64_t key = 0, key_high = 0;
    std::uint16_t port = 0;            ///< where it listens for agents
    std::vector<std::string> callers;  ///< its numeric addresses, best first
};

std::vector<std::byte> write_card(const ExecCard& card);
/// An environment error for bytes that are no card.
Result<ExecCard> read_card(Bytes bytes);

struct Placement {
    std::vector<HostPlan> hosts;           ///< process 0's first, the others by their first process
    std::vector<std::uint32_t> host_of;    ///< by process
    std::vector<std::uint32_t> leader_of;  ///< by host: its lowest process
    bool leads(std::uint32_t process) const { return leader_of[host_of[process]] == process; }
};

/// The ranks of a host are one run, whatever order the launcher mapped processes in.
/// Environment error: processes of different builds, naming both and their hosts.
Result<Placement> place(const std::vector<ExecCard>& cards);

}  // namespace hiroba::tools
