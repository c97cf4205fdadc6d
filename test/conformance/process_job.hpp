// SPDX-License-Identifier: BSD-3-Clause
// Role: a job for tests: forks one process for each node and lets them meet; simulated nodes live
// together in one.
// Invariant: run_job() ends within its time limit whatever its nodes do; it is called before the
// test program has started a thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "base/random.hpp"
#include "base/turns.hpp"
#include "conformance/thread.hpp"
#include "net/net.hpp"
#include "net/provider/address_exchange.hpp"

namespace hiroba::net::sim {
class SimJob;
}

namespace hiroba::conformance {

/// HIROBA_TEST_ROUNDS=all: four to twenty times the rounds (docs/testing.md), and longer time
/// limits.
bool all_rounds();
/// HIROBA_TEST_SLOWER: how many times slower than a processor this one is that is emulated; 1.
std::uint64_t times_slower();

/// What one node of the job has. Lives in the forked process.
struct Rig {
    std::string provider;
    NodeId self;
    std::uint32_t nodes = 1;
    net::AddressExchange exchange;
    bool storm = false;  ///< datagrams are lost, doubled and held back; connections break
    net::sim::SimJob* simulation = nullptr;  ///< where the node is simulated
    net::Endpoint* opened = nullptr;         ///< by open(), last
    int launcher = -1;                       ///< socket
    /// What open() puts around the provider, or nothing.
    std::function<std::unique_ptr<net::Provider>(std::unique_ptr<net::Provider>)> wrap = nullptr;

    NodeId next() const { return NodeId{(self.value + 1) % nodes}; }
    /// An endpoint that is not connected yet. A failure ends the process.
    std::unique_ptr<net::Endpoint> open(std::uint64_t job_key = 7);
    /// Waits until the job's victim has died, and tells the provider as a launcher would. No
    /// meet() or exchange of any kind can succeed from then on.
    void await_loss();
    /// Waits for all nodes without any communication layer. Where others need this node to carry
    /// out their operations, it does so meanwhile.
    void meet();
    /// How often this node's threads have slept in the opened endpoint's provider, or, of a
    /// process, given up their core.
    std::uint64_t sleeps() const;
    /// How long to go on; virtual time takes longer than it says.
    std::uint64_t duration_ns(std::uint64_t ns) const {
        const std::uint64_t whole_ns = all_rounds() ? 40 * ns : ns;
        return simulation != nullptr ? whole_ns / 25 : whole_ns;
    }
    /// A limit of time, on a slower machine so many times as long; not as long as `hang_ns`, which
    /// what the limit is against would take.
    std::uint64_t limit_ns(std::uint64_t ns, std::uint64_t hang_ns) const {
        return std::min(ns * times_slower(), hang_ns / 10 * 9);
    }
    /// `count` of all rounds; else a share of it, the smaller the more a round costs.
    std::uint64_t rounds(std::uint64_t count) const {
        if (storm) return all_rounds() ? count / 8 : count / 80;
        if (simulation != nullptr && !all_rounds()) return count / 20;
        const std::uint64_t share = opened->provider().limits().completes_inline ? 1 : 4;
        return count / (all_rounds() ? share : 4 * share);
    }
};

/// Which provider between how many nodes; the parameter of the suite.
struct Setting {
    std::string provider;
    std::uint32_t nodes;
    bool storm = false;
    const char* network = "";  ///< HIROBA_NET

    /// "sim", and "sim_one_thread" with cards that one thread may enter at a time.
    bool simulated() const { return provider.starts_with("sim"); }
    std::string name() const {
        const char* const kind = storm ? "_storm_" : *network != 0 ? "_ipv6_" : "_";
        std::string word = provider;
        std::ranges::replace(word, '+', '_');
        return word + kind + std::to_string(nodes);
    }
};
inline void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name(); }

/// Runs `body` in every node's process, in network namespace <HIROBA_TEST_NETNS><rank % 2> where
/// that variable is set (test/cluster/namespaces.py); a gtest failure there or a bad end fails the
/// calling test.
/// @param seconds_max  of the nodes' own processor time, each (allowance.hpp)
/// @param victim  a node that has to die of SIGKILL
void run_job(const Setting& setting, const std::function<void(Rig&)>& body,
             unsigned seconds_max = 60, std::optional<NodeId> victim = {});

}  // namespace hiroba::conformance
