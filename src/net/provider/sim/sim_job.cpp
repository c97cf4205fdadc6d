// SPDX-License-Identifier: BSD-3-Clause
#include "net/provider/sim/sim_job.hpp"

#include <utility>

#include "net/provider/sim/sim_provider.hpp"

namespace hiroba::net::sim {

SimJob::SimJob(FiberStacks& stacks, std::uint32_t nodes, const SchedulerOptions& scheduling,
               const NetworkOptions& wire)
    : nodes_(nodes), scheduler_(stacks, scheduling), network_(scheduler_, nodes, wire) {
    coming_.bytes.resize(nodes);
}

Scheduler::Outcome SimJob::run(const std::function<void(NodeId)>& body) {
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
        scheduler_.spawn(NodeId{rank}, [&body, rank] { body(NodeId{rank}); });
    }
    return scheduler_.run();
}

ControlChannel::Gathered SimJob::gather(NodeId self, Bytes mine) {
    coming_.bytes[self.value].assign(mine.begin(), mine.end());
    const std::uint64_t round = round_;
    if (++come_ == nodes_) {
        coming_.fds.assign(nodes_, -1);
        last_ = std::make_shared<const ControlChannel::Gathered>(std::move(coming_));
        coming_ = {};
        coming_.bytes.resize(nodes_);
        come_ = 0;
        ++round_;
        for (Fiber* fiber : std::exchange(waiting_, {})) scheduler_.wake(*fiber);
    }
    while (round_ == round) {
        waiting_.push_back(&scheduler_.running());
        scheduler_.park(~std::uint64_t{0});
    }
    return *last_;  // no other round begins and ends before this thread has its turn
}

ProviderSetup SimJob::setup(NodeId self, std::uint64_t job_key) {
    return {.self = self,
            .nodes = nodes_,
            .job_key = job_key,
            .exchange = [this, self](Bytes mine, int) {
                return Result<ControlChannel::Gathered>(gather(self, mine));
            }};
}

std::unique_ptr<Endpoint> SimJob::open(NodeId self, std::uint64_t job_key) {
    return Endpoint::over(self, nodes_,
                          std::make_unique<SimProvider>(network_, setup(self, job_key)));
}

const char* outcome_name(Scheduler::Outcome outcome) noexcept {
    switch (outcome) {
        case Scheduler::Outcome::ended: return "ended";
        case Scheduler::Outcome::stuck: return "stuck: every thread waits for another";
        case Scheduler::Outcome::out_of_time: return "not ended in time";
        case Scheduler::Outcome::stopped: return "stopped";
    }
    return "?";
}

}  // namespace hiroba::net::sim
