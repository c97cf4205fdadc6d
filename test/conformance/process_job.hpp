// SPDX-License-Identifier: BSD-3-Clause
// Role: a job for tests: forks one process for each node and lets them meet.
// Invariant: run_job() ends within its time limit whatever its nodes do; it is called before the
// test program has started a thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "net/net.hpp"
#include "net/provider/address_exchange.hpp"

namespace hiroba::conformance {

/// What one process of the job has. Lives in the forked process.
struct Rig {
    std::string provider;
    NodeId self;
    std::uint32_t nodes = 1;
    net::AddressExchange exchange;
    bool storm = false;               ///< datagrams are lost, doubled and held back
    net::Endpoint* opened = nullptr;  ///< by open(), last
    int launcher = -1;                ///< socket

    NodeId next() const { return NodeId{(self.value + 1) % nodes}; }
    /// An endpoint that is not connected yet. A failure ends the process.
    std::unique_ptr<net::Endpoint> open(std::uint64_t job_key = 7);
    /// Waits until the job's victim has died, and tells the provider as a launcher would. No
    /// meet() or exchange of any kind can succeed from then on.
    void await_loss();
    /// Waits for all nodes without any communication layer. Where others need this node to carry
    /// out their operations, it does so meanwhile.
    void meet();
    /// `count`, or a share of it where a round costs many times more.
    std::uint64_t rounds(std::uint64_t count) const {
        if (storm) return count / 80;
        return opened->provider().limits().completes_inline ? count : count / 4;
    }
};

/// Which provider between how many nodes; the parameter of the suite.
struct Setting {
    std::string provider;
    std::uint32_t nodes;
    bool storm = false;
    const char* network = "";  ///< HIROBA_NET

    std::string name() const {
        const char* const kind = storm ? "_storm_" : *network != 0 ? "_ipv6_" : "_";
        return provider + kind + std::to_string(nodes);
    }
};
inline void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name(); }

/// Runs `body` in every node's process, in network namespace <HIROBA_TEST_NETNS><rank % 2> where
/// that variable is set (test/cluster/namespaces.py); a gtest failure there or a bad end fails the
/// calling test.
/// @param victim  a node that has to die of SIGKILL
void run_job(const Setting& setting, const std::function<void(Rig&)>& body,
             unsigned seconds_max = 60, std::optional<NodeId> victim = {});

/// Repeatable pseudo-random numbers (SplitMix64).
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() noexcept {
        std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15u;
        z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9u;
        z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBu;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t bound) noexcept { return (*this)() % bound; }

private:
    std::uint64_t state_;
};

}  // namespace hiroba::conformance
