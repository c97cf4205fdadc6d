// SPDX-License-Identifier: BSD-3-Clause
// Role: a rank of ACP on a node of a test, and the adversary that holds packets up: on the ways it
// has chosen each packet waits much longer than on the others, so that whatever may overtake does.
// Invariant: as acp::Node puts the parts together; only the launcher is missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "acp/command_station.hpp"
#include "gas/delegate.hpp"
#include "gas/global_memory.hpp"
#include "sim/sim_job.hpp"

namespace hiroba::sim_test {

/// Thread: those of its node. One simulated thread issues: what a rank's thread issued last is
/// remembered for the machine's thread.
class AcpRank {
public:
    /// @param endpoint  not connected yet
    AcpRank(std::unique_ptr<net::Endpoint> endpoint, std::uint64_t starter_bytes);
    /// False: the nodes did not meet.
    bool connect();

    std::uint64_t address(std::uint32_t rank, std::uint64_t offset) const {
        return memory_.symmetric_address(NodeId{rank}) + offset;
    }
    /// This rank's starter memory.
    std::byte* at(std::uint64_t offset) { return memory_.symmetric().local() + offset; }
    std::uint64_t& word(std::uint64_t offset) {
        return *reinterpret_cast<std::uint64_t*>(at(offset));
    }
    std::uint64_t submit(const acp::Access& access, acp::Order order);
    std::uint64_t copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes, acp::Order order);
    void complete(std::uint64_t handle) { station_.complete(delegate_, handle); }
    bool is_incomplete(std::uint64_t handle) { return station_.is_incomplete(delegate_, handle); }
    std::uint64_t last_handle() const { return station_.last_handle(); }
    net::Endpoint& endpoint() { return *endpoint_; }

private:
    std::unique_ptr<net::Endpoint> endpoint_;
    gas::GlobalMemory memory_;
    gas::Delegate delegate_;
    acp::CommandStation station_;
};

/// A job of ranks of which each runs `program` and serves the others until all have ended.
struct AcpJob {
    std::uint32_t ranks = 3;
    std::uint64_t starter_bytes = std::uint64_t{1} << 20;
    net::sim::SchedulerOptions scheduling;
    net::sim::NetworkOptions wire;
    /// Before the first rank's program starts, when all have connected.
    std::function<void(std::vector<std::unique_ptr<AcpRank>>&)> prepare;
    std::function<void(std::uint32_t rank, AcpRank&)> program;
};
/// How it ended; empty: every program came to its end.
std::string run_acp_job(net::sim::FiberStacks& stacks, const AcpJob& what);

/// Holds up every packet on some ways, once each time it is sent.
class SlowWays final : public net::sim::Delays {
public:
    explicit SlowWays(std::uint64_t hold_ns) : hold_ns_(hold_ns) {}
    void slow(std::uint32_t from, std::uint32_t to) { slow_ |= bit(from, to); }
    bool is_slow(std::uint32_t from, std::uint32_t to) const {
        return (slow_ & bit(from, to)) != 0;
    }
    std::uint64_t delay_ns(std::uint64_t what) override;

    std::function<void()> before_each_step;

private:
    static constexpr std::uint64_t bit(std::uint64_t from, std::uint64_t to) {
        return std::uint64_t{1} << (from * 8 + to);
    }
    std::uint64_t hold_ns_, slow_ = 0;
    std::unordered_map<std::uint64_t, std::uint32_t> held_;  ///< by what tells a packet apart
};

}  // namespace hiroba::sim_test
