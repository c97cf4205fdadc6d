// SPDX-License-Identifier: BSD-3-Clause
// Role: how a provider meets its peers, so that it need not know who brings them together (the
// launcher's control channel in a job, threads or pipes in a test).
// Invariant: collective; every node calls it equally often and with equally many bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "net/bootstrap/job.hpp"

namespace hiroba::net {

/// As ControlChannel::all_gather(): everybody's bytes and descriptors (owned by the caller), in
/// rank order.
using AddressExchange = std::function<Result<ControlChannel::Gathered>(Bytes mine, int fd)>;

/// What every provider is made of.
struct ProviderSetup {
    NodeId self;
    std::uint32_t nodes = 1;
    std::uint64_t job_key = 0;
    AddressExchange exchange;  ///< not called in a job of one node
    std::uint64_t job_key_high = 0;
    std::uint64_t host = 0;  ///< equal on one host alone; 0: to be found out
    /// Numeric address by which peers on other hosts reach this one; empty: as HIROBA_NET says.
    std::string network = {};
    /// The RDMA device to use; empty: as HIROBA_VERBS_DEVICE says.
    std::string device = {};
    /// All nodes are on this host: what comes from elsewhere need not be heard.
    bool one_host = false;
    /// The memory of a region that another provider allocated, asked after its connect(); empty:
    /// the provider has memory of its own.
    std::function<MutableBytes(std::uint32_t region)> memory = {};
    /// The node's threads sleep at another provider; a Listener sleeps here for all of them, in the
    /// role of the service thread.
    bool has_listener = false;
};

}  // namespace hiroba::net
