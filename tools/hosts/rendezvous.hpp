// SPDX-License-Identifier: BSD-3-Clause
// Role: where agents come to: listens, and lets agents in that know the job's key.
// Invariant: a stranger costs one connection and a kilobyte until its time is over; what it sends
// changes nothing.
#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/bootstrap/host_link.hpp"

namespace hiroba::tools {

/// An agent that has shown that it belongs to the job.
struct Arrival {
    net::HostLink link;
    std::uint64_t host_index;
    net::HelloBody hello;
};

class Rendezvous {
public:
    static constexpr std::uint64_t stranger_limit_ns = 10'000'000'000;
    static constexpr std::size_t strangers_max = 256;

    /// Listens on a free TCP port of every address of this host.
    static Result<Rendezvous> open(net::wire::HashKey key);
    Rendezvous(Rendezvous&& other) noexcept;
    Rendezvous& operator=(Rendezvous&&) = delete;
    ~Rendezvous() { close(); }

    std::uint16_t port() const { return port_; }
    void add_poll_entries(std::vector<pollfd>& entries) const;
    /// Takes connections in and drops strangers; returns the agents that have come.
    std::list<Arrival> serve(std::uint64_t now_ns);
    /// Stops listening: all agents are there.
    void close();

private:
    struct Stranger {
        net::HostLink link;
        std::uint64_t since_ns;
        bool welcomed = false;
    };
    Rendezvous(int socket, std::uint16_t port, net::wire::HashKey key)
        : socket_(socket), port_(port), key_(key) {}
    void accept_all(std::uint64_t now_ns);

    int socket_;
    std::uint16_t port_;
    net::wire::HashKey key_;
    std::list<Stranger> strangers_;
};

/// Numeric addresses under which other hosts may reach this one, best first; loopback only when
/// there is nothing else.
std::vector<std::string> reachable_addresses();

}  // namespace hiroba::tools
