// SPDX-License-Identifier: BSD-3-Clause
// Role: one node of a measurement: its end of the communication, its partner, and how batches of
// the floor and of the test are taken in turn.
// Invariant: the nodes work in pairs, all pairs at once: rank k of the first half with the k-th of
// the second, so that over hosts, which ranks fill in order, a pair lies on two. Rank 0's figures
// are reported. A node without a partner takes part in collectives alone.
#pragma once

#include <sched.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/fatal.hpp"
#include "base/result.hpp"
#include "net/async.hpp"
#include "net/bootstrap/job.hpp"
#include "net/collectives.hpp"
#include "net/kick/kick.hpp"
#include "tools/perf/plan.hpp"

namespace hiroba::tools::perf_parts {

class Rig {
public:
    /// Makes everything; handlers may be registered until connect().
    static Result<std::unique_ptr<Rig>> open(const net::JobInfo& job, const PerfPlan& plan);
    /// Meets the other nodes.
    Result<void> connect();
    ~Rig();
    /// Has `ending` run when the last measurement is over, while the nodes still talk.
    void at_end(std::function<void()> ending) { ending_ = std::move(ending); }
    /// Tells the launcher that this node ends orderly. From then on others may be gone.
    void leave();

    const PerfPlan& plan() const { return plan_; }
    const net::JobInfo& job() const { return job_; }
    net::ControlChannel& control() { return control_; }
    std::uint32_t self() const { return self_; }
    std::uint64_t bytes() const { return plan_.bytes; }
    /// NodeId{plan().nodes}: there is none.
    NodeId partner() const {
        const std::uint32_t half = plan_.nodes / 2;
        if (self_ < half) return NodeId{self_ + half};
        return NodeId{self_ < 2 * half ? self_ - half : plan_.nodes};
    }
    bool has_partner() const { return partner().value < plan_.nodes; }
    /// Whether this node is of the first half, which asks; its partner answers.
    bool leads() const { return self_ < plan_.nodes / 2; }
    net::Async& async() { return *async_; }
    net::Endpoint& endpoint() { return *endpoint_; }
    net::Collectives& collectives() { return *collectives_; }
    net::kick::Board& board() { return *board_; }
    const char* provider_name() { return endpoint_->provider().limits().name; }
    /// Every node's memory, so that floors are loads and stores. Over hosts nobody's counts.
    bool maps_peers() { return job_.hosts == 1 && endpoint_->provider().limits().maps_peers; }

    /// Memory of each node: where partners write, and from where this node writes.
    static constexpr std::uint64_t area_bytes = std::uint64_t{64} << 20;
    net::Handle landing() const { return landing_; }
    net::Handle source() const { return source_; }
    std::byte* landing_bytes() { return async_->local(landing_).data(); }
    std::byte* source_bytes() { return async_->local(source_).data(); }
    /// `node`'s landing area for loads and stores; nullptr where nothing is mapped.
    std::byte* mapped_landing(NodeId node);

    /// Runs `iterations` operations and returns the nanoseconds of one.
    using Batch = std::function<double(std::uint64_t iterations)>;
    /// Takes batches of both in turn for the planned time. Collective.
    /// @param unit  iterations are a multiple of it
    /// @param authenticated_floor  a third to take turns with, if any
    /// @param batch_ns  how long a batch of the test takes at least, but for iterations_max
    Measured alternate(const Batch& floor, const Batch& test, std::uint64_t unit,
                       std::uint64_t iterations_max, const Batch& authenticated_floor = {},
                       double batch_ns = 40'000);

    /// As the floors wait: spinning while every node has a core, else spinning briefly and then
    /// yielding.
    template <class Predicate>
    void spin_until(Predicate&& predicate) const {
        for (std::uint64_t spun = 0; !predicate(); ++spun) {
            if (spun < spins_max_) {
                __builtin_ia32_pause();
            } else {
                sched_yield();
            }
        }
    }
    /// Undoes for the calling thread what binds the measuring one to a core: a thread that answers
    /// for the node runs wherever there is room, as it does in a program.
    void use_all_cores() const;
    /// A number no earlier exchange of this measurement has used.
    std::uint64_t next_number() { return ++number_; }
    /// A datagram of the floor did not come.
    void count_loss() { ++lost_; }
    /// How many did not come to the node that missed most. Collective.
    std::uint64_t most_lost() { return static_cast<std::uint64_t>(longest(double(lost_))); }
    /// The greatest of all nodes' numbers. Collective.
    double longest(double mine);
    /// True when every node says so. Collective.
    bool all_agree(bool mine);

private:
    Rig(const net::JobInfo& job, const PerfPlan& plan);

    PerfPlan plan_;
    net::JobInfo job_;
    net::ControlChannel control_;
    std::uint32_t self_;
    cpu_set_t all_cores_{};
    std::uint64_t spins_max_ = 100;
    std::uint64_t number_ = 0, lost_ = 0;
    net::Handle landing_, source_;
    std::unique_ptr<net::Endpoint> endpoint_;
    std::unique_ptr<net::Collectives> collectives_;
    std::unique_ptr<net::kick::Board> board_;
    std::unique_ptr<net::Async> async_;
    std::thread service_;
    std::function<void()> ending_;
};

/// Makes a request until it is accepted; polls while a queue is full.
template <class Try>
void insist(Rig& rig, Try&& attempt) {
    net::Submission made;
    while ((made = attempt()) == net::Submission::again) {
        if (!rig.endpoint().poll()) sched_yield();
    }
    if (made == net::Submission::refused) [[unlikely]]
        fatal("a request of the measurement was refused");
}

}  // namespace hiroba::tools::perf_parts
