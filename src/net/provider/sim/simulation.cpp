// SPDX-License-Identifier: BSD-3-Clause
// Role: see net/simulation.hpp.
#include "net/simulation.hpp"

#include "base/fatal.hpp"
#include "net/provider/sim/sim_job.hpp"

namespace hiroba::net {
namespace {

constexpr std::uint64_t key = 7;
/// The simulation of this process, which has one at a time.
Simulation* running = nullptr;

sim::SchedulerOptions scheduling_of(const SimulationOptions& options) {
    return {.seed = options.seed, .limit_ns = options.limit_ns, .memory = options.memory};
}

sim::NetworkOptions wire_of(const SimulationOptions& options) {
    return {.loss = options.loss, .duplicate = options.duplicate, .reorder = options.reorder};
}

}  // namespace

struct Simulation::Parts {
    explicit Parts(const SimulationOptions& options)
        : stacks(options.stack_bytes),
          job(stacks, options.nodes, scheduling_of(options), wire_of(options)) {}
    sim::FiberStacks stacks;
    sim::SimJob job;

    sim::Scheduler& scheduler() noexcept { return job.scheduler(); }
    /// Fibers are numbered as they are made, by the service threads of nodes too.
    sim::Fiber& fiber(std::uint32_t thread) noexcept { return scheduler().fiber(thread); }
};

Simulation::Simulation(const SimulationOptions& options)
    : parts_(std::make_unique<Parts>(options)) {}

Simulation::~Simulation() = default;

Simulation::End Simulation::run(const std::function<void(NodeId)>& first) {
    HIROBA_INVARIANT(running == nullptr, "a simulation runs already");
    running = this;
    const auto outcome = parts_->job.run(first);
    running = nullptr;
    switch (outcome) {
        case sim::Scheduler::Outcome::ended: return End::ended;
        case sim::Scheduler::Outcome::stuck: return End::stuck;
        case sim::Scheduler::Outcome::out_of_time: return End::out_of_time;
        case sim::Scheduler::Outcome::stopped: break;
    }
    return End::stopped;
}

Simulation* Simulation::current() noexcept {
    return turns_of_this_thread() != nullptr ? running : nullptr;
}

std::uint64_t Simulation::time_ns() const noexcept { return parts_->scheduler().time_ns(); }
std::uint64_t Simulation::events() const noexcept { return parts_->scheduler().events(); }
std::uint64_t Simulation::trace_hash() const noexcept { return parts_->scheduler().trace_hash(); }

NodeId Simulation::self() const noexcept { return parts_->scheduler().running().node; }
std::uint32_t Simulation::thread() const noexcept { return parts_->scheduler().running().index; }

std::uint32_t Simulation::spawn(std::function<void()> body) {
    return parts_->scheduler().spawn(self(), std::move(body)).index;
}

void Simulation::join(std::uint32_t thread) noexcept {
    parts_->scheduler().join(parts_->fiber(thread));
}

void Simulation::pass() noexcept { parts_->scheduler().pass(); }
std::uint64_t Simulation::now_ns() noexcept { return parts_->scheduler().now_ns(); }
void Simulation::park(std::uint64_t deadline_ns) noexcept { parts_->scheduler().park(deadline_ns); }
void Simulation::wake(std::uint32_t thread) noexcept {
    parts_->scheduler().wake(parts_->fiber(thread));
}

void Simulation::end_node() noexcept {
    parts_->scheduler().crash(self());
    fatal("an ended thread has a turn");
}

void Simulation::stop() noexcept { parts_->scheduler().stop(); }
std::unique_ptr<Endpoint> Simulation::open() { return parts_->job.open(self(), key); }
std::uint64_t Simulation::job_key() const noexcept { return key; }

}  // namespace hiroba::net
