// SPDX-License-Identifier: BSD-3-Clause
// Role: what a process that another launcher started, and `hiroba join` beside it, its keeper, say
// to each other. The keepers are launcher, agents and go-betweens of the job that the processes
// make. Invariant: one seqpacket socket, which is descriptor keeper_fd in the keeper, and packets
// of control_packet.hpp. Both ends are of one build.
//
//   process -> keeper   card     header alone: its rank and the number of processes
//   keeper  -> process  card     this process's card
//   process -> keeper   card     the cards of all, by rank
//   keeper  -> process  joined or refused
//
// Then the socket stays open until the keeper ends.
#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "net/bootstrap/control_packet.hpp"

namespace hiroba::net {

inline constexpr int keeper_fd = 3;

struct JobKey {
    std::uint64_t low = 0, high = 0;
};

/// What a node that has joined is in the job.
struct JoinedBody {
    std::uint32_t rank = 0;
    std::uint32_t nodes = 0;
    std::uint32_t threads_per_node = 0;
    std::uint32_t hosts = 0;
    JobKey key;
    char network[64] = {};  ///< JobInfo::network, ends with 0
};

}  // namespace hiroba::net
