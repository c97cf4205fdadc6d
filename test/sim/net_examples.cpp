// SPDX-License-Identifier: BSD-3-Clause
// Role: the examples of hiroba/net.hpp and hiroba/kick.hpp, as they are, on simulated nodes: their
// main is renamed, and Network::open() gives each the node it runs on. Usage: sim_net_examples
// [nodes] [seeds]. Exit status 0: every example verified on every node of every run.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "abi/net/network.hpp"
#include "conformance/thread.hpp"
#include "net/provider/sim/sim_provider.hpp"
#include "sim/sim_job.hpp"

int net_histogram_main(int, char**);
int net_heat_main(int, char**);
int net_farm_main(int, char**);
int kick_pingpong_main(int, char**);
int kick_sieve_main(int, char**);
int kick_plate_main(int, char**);

namespace hiroba::sim_test {
namespace {

/// The job that runs now; simulated nodes take turns on one thread.
SimJob* job = nullptr;

struct Example {
    const char* name;
    int (*main)(int, char**);
    std::vector<const char*> arguments;
};
const Example examples[] = {{"net_histogram", net_histogram_main, {"300", "1"}},
                            {"net_heat", net_heat_main, {"40", "20"}},
                            {"net_farm", net_farm_main, {"5"}},
                            {"kick_pingpong", kick_pingpong_main, {"200"}},
                            {"kick_sieve", kick_sieve_main, {"500"}},
                            {"kick_plate", kick_plate_main, {"4", "20"}}};

bool holds(const Example& example, std::uint32_t nodes, std::uint64_t seed, bool storm) {
    net::sim::NetworkOptions wire;
    if (storm) wire.loss = 10, wire.duplicate = 5, wire.reorder = 30;
    net::sim::SchedulerOptions scheduling;
    scheduling.seed = seed;
    net::sim::FiberStacks stacks;
    SimJob simulated{stacks, nodes, scheduling, wire};
    job = &simulated;
    std::uint32_t good = 0;
    const auto outcome = simulated.run([&](NodeId) {
        std::vector<std::string> words{example.name};
        words.insert(words.end(), example.arguments.begin(), example.arguments.end());
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        good += example.main(static_cast<int>(words.size()), argv.data()) == 0;
    });
    job = nullptr;
    if (outcome == net::sim::Scheduler::Outcome::ended && good == nodes) return true;
    std::fprintf(stderr, "%s on %u simulated nodes%s, seed %lu: %s, %u nodes verified\n",
                 example.name, nodes, storm ? " in a storm" : "", seed, outcome_name(outcome),
                 good);
    return false;
}

}  // namespace
}  // namespace hiroba::sim_test

namespace hiroba::net {

std::unique_ptr<Network> Network::open(std::string* why, const Options& options) {
    const NodeId self = sim::Scheduler::current()->running().node;
    const auto service = std::make_shared<conformance::Thread>();
    auto made = NetworkOver::make(sim_test::job->open(self), options,
                                  {.start =
                                       [service](std::function<void()> body) {
                                           *service = conformance::Thread{std::move(body)};
                                       },
                                   .join = [service] { service->join(); },
                                   .job_key = 7});
    if (made) return std::move(*made);
    *why = made.error().text;
    return nullptr;
}

}  // namespace hiroba::net

int main(int argc, char** argv) {
    using namespace hiroba::sim_test;
    const auto most = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 4);
    const std::uint64_t seeds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 3;
    bool good = true;
    for (const Example& example : examples)
        for (std::uint32_t nodes = 1; nodes <= most; ++nodes)
            for (std::uint64_t seed = 1; seed <= seeds; ++seed)
                for (const bool storm : {false, true})
                    good = holds(example, nodes, seed, storm && nodes > 1) && good;
    std::printf("%lu examples, 1 to %u nodes, %lu seeds: VERIFICATION %s\n", std::size(examples),
                most, seeds, good ? "SUCCESSFUL" : "FAILED");
    return good ? 0 : 1;
}
