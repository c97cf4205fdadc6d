// SPDX-License-Identifier: BSD-3-Clause
#include "sim/kick_barriers.hpp"

#include <vector>

#include "base/random.hpp"

namespace hiroba::sim_test {
namespace {

using namespace net::kick;

/// What all nodes see of each other, as only a simulator can.
struct Watch {
    std::vector<std::uint32_t> arrived;
    std::uint64_t begun_ns = 0, ended_ns = 0;
    std::uint32_t begun = 0, ended = 0;
    std::string fault;

    void check(std::uint32_t self, std::uint32_t phase) {
        for (std::uint32_t rank = 0; fault.empty() && rank < arrived.size(); ++rank) {
            if (arrived[rank] >= phase) continue;
            fault = "node " + std::to_string(self) + " passed phase " + std::to_string(phase) +
                    ", node " + std::to_string(rank) + " was in " + std::to_string(arrived[rank]);
        }
    }
};

void meet(SimJob& job, const KickBarriers& what, NodeId self, Watch& watch) {
    const auto endpoint = job.open(self);
    auto board = Board::create(*endpoint, 7, page_bytes);
    if (!board || !Barrier::reserve(**board) || !endpoint->connect()) {
        watch.fault = "node " + std::to_string(self.value) + " did not connect";
        return;
    }
    (*board)->attach();
    auto opened = Barrier::open(**board, 0, everyone(*endpoint), what.shape);
    if (!opened) {
        watch.fault = opened.error().text;
        return;
    }
    auto barrier = std::move(*opened);
    Random random{what.scheduling.seed * 0x9E37'79B9 + self.value};
    job.gather(self, {});
    if (++watch.begun == what.nodes) watch.begun_ns = job.scheduler().time_ns();
    for (std::uint32_t phase = 1; phase <= what.phases; ++phase) {
        if (what.pause_max_ns != 0) {
            // Most are quick, some late by many times what a barrier takes.
            const bool late = random.below(16) == 0;
            job.scheduler().work(1 + random.below(late ? what.pause_max_ns : 2'000));
        }
        watch.arrived[self.value] = phase;
        barrier.arrive();
        barrier.wait();
        watch.check(self.value, phase);
    }
    if (++watch.ended == what.nodes) watch.ended_ns = job.scheduler().time_ns();
    job.gather(self, {});
}

}  // namespace

KickBarriersRun run_kick_barriers(net::sim::FiberStacks& stacks, const KickBarriers& what) {
    SimJob job{stacks, what.nodes, what.scheduling, what.wire};
    Watch watch;
    watch.arrived.assign(what.nodes, 0);
    const auto outcome = job.run([&](NodeId self) { meet(job, what, self, watch); });
    if (watch.fault.empty() && outcome != net::sim::Scheduler::Outcome::ended) {
        watch.fault = outcome_name(outcome);
    }
    return {watch.fault, (watch.ended_ns - watch.begun_ns) / what.phases};
}

}  // namespace hiroba::sim_test
