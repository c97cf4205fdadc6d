// SPDX-License-Identifier: BSD-3-Clause
// Role: the order of ACP's accesses on simulated ranks between which some ways are slow: random
// commands against an oracle, and for each kind of order what must *not* be waited for.
// Usage: sim_acp_order FIRST LAST [first]: seeds from 1; `first` stops at the first failure.
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/acp/acp_rank.hpp"
#include "sim/acp/random_commands.hpp"

namespace hiroba::sim_test {
namespace {

using Kind = acp::Order::Kind;

constexpr std::uint64_t here = 4096, there = 65536, data_bytes = 40'000;

/// Node 0 issues; the ways named are slow, all others fast.
struct Scenario {
    const char* claim;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> slow;
    /// What was wrong; empty: nothing. `all` is for looking.
    std::string (*program)(AcpRank& mine, std::vector<std::unique_ptr<AcpRank>>& all);
};

/// Makes progress until a word of `rank` is not 0; `unfinished` must still be under way then.
std::string comes_before(AcpRank& mine, AcpRank& rank, std::uint64_t unfinished) {
    while (rank.word(there) == 0 && mine.is_incomplete(unfinished)) {
    }
    const bool early = mine.is_incomplete(unfinished);
    mine.complete(mine.last_handle());
    return early ? "" : "it waited for what it is not ordered behind";
}

const Scenario scenarios[] = {
    {"NULL starts past commands that cannot start",
     {{0, 1}, {1, 0}},
     [](AcpRank& mine, auto& all) {
         all[2]->word(here) = 7;
         const auto slow = mine.copy(mine.address(1, there), mine.address(0, here), 8, {});
         mine.copy(mine.address(2, 8), mine.address(0, here), 8, {Kind::everything, 0});
         mine.copy(mine.address(0, there), mine.address(2, here), 8, {});
         return comes_before(mine, mine, slow);
     }},
    {"NULL within the rank is done in the call",
     {{0, 1}, {1, 0}},
     [](AcpRank& mine, auto&) {
         mine.word(here) = 7;
         mine.copy(mine.address(1, there), mine.address(0, here), 8, {});
         mine.copy(mine.address(2, 8), mine.address(0, here), 8, {Kind::everything, 0});
         mine.copy(mine.address(0, there), mine.address(0, here), 8, {});
         const bool done = mine.word(there) == 7;
         mine.complete(mine.last_handle());
         return std::string(done ? "" : "it is not");
     }},
    {"a handle waits for nothing issued after it",
     {{0, 1}, {1, 0}},
     [](AcpRank& mine, auto& all) {
         all[2]->word(here) = 7;
         const auto first = mine.copy(mine.address(2, 8), mine.address(0, here), 8, {});
         const auto slow = mine.copy(mine.address(1, there), mine.address(0, here), 8, {});
         mine.copy(mine.address(0, there), mine.address(2, here), 8, {Kind::up_to, first});
         return comes_before(mine, mine, slow);
     }},
    {"CONT waits for nothing before its predecessor",
     {{0, 1}, {1, 0}},
     [](AcpRank& mine, auto& all) {
         all[2]->word(here) = 7;
         const auto slow = mine.copy(mine.address(1, there), mine.address(0, here), 8, {});
         mine.copy(mine.address(2, 8), mine.address(0, here), 8, {});
         mine.copy(mine.address(0, there), mine.address(2, here), 8, {Kind::previous, 0});
         return comes_before(mine, mine, slow);
     }},
    {"CONT along the same way waits for no answer",
     {{1, 0}},
     [](AcpRank& mine, auto& all) {
         mine.word(here) = 7;
         const auto data = mine.copy(mine.address(1, 128), mine.address(0, here), data_bytes, {});
         mine.copy(mine.address(1, there), mine.address(0, here), 8, {Kind::previous, 0});
         return comes_before(mine, *all[1], data);
     }},
    {"CONT along the same way between two others waits for no answer",
     {{2, 0}},
     [](AcpRank& mine, auto& all) {
         all[1]->word(here) = 7;
         const auto data = mine.copy(mine.address(2, 128), mine.address(1, here), data_bytes, {});
         mine.copy(mine.address(2, there), mine.address(1, here), 8, {Kind::previous, 0});
         return comes_before(mine, *all[2], data);
     }},
    {"ALL starts when everything before it is complete, whoever completes it",
     {},
     [](AcpRank& mine, auto& all) {
         all[2]->word(here) = 7;
         mine.copy(mine.address(1, there), mine.address(0, here), 8, {});
         mine.copy(mine.address(0, there), mine.address(2, here), 8, {Kind::everything, 0});
         mine.complete(mine.last_handle());
         return std::string(mine.word(there) == 7 ? "" : "it did not");
     }},
};

std::string run_scenario(net::sim::FiberStacks& stacks, const Scenario& scenario) {
    SlowWays ways{3'000'000};
    for (const auto& [from, to] : scenario.slow) ways.slow(from, to);
    AcpJob job;
    job.scheduling.limit_ns = 10'000'000'000;
    job.scheduling.delays = &ways;
    std::string fault;
    std::vector<std::unique_ptr<AcpRank>>* all = nullptr;
    job.prepare = [&](auto& ranks) { all = &ranks; };
    job.program = [&](std::uint32_t rank, AcpRank& mine) {
        if (rank == 0) fault = scenario.program(mine, *all);
    };
    const std::string ended = run_acp_job(stacks, job);
    return ended.empty() ? fault : ended;
}

int run(std::uint64_t first, std::uint64_t last, bool stop_at_first) {
    net::sim::FiberStacks stacks;
    std::uint64_t runs = 0, failures = 0;
    const auto note = [&](const std::string& what, const std::string& fault) {
        ++runs;
        if (fault.empty()) return false;
        std::printf("%s: %s\n", what.c_str(), fault.c_str());
        if (++failures == 1 && stop_at_first) {
            std::printf("first failure after %" PRIu64 " runs\n", runs);
        }
        return stop_at_first;
    };
    for (const Scenario& scenario : scenarios) {
        if (note(scenario.claim, run_scenario(stacks, scenario))) return 1;
    }
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        const std::string replay =
            "replay: sim_acp_order " + std::to_string(seed) + " " + std::to_string(seed);
        alarm(60);  // a program that neither ends nor waits: no virtual time will stop it
        if (note(replay, run_random_commands(stacks, seed))) return 1;
    }
    std::printf("%" PRIu64 " runs of ordered accesses, %" PRIu64 " failed\n", runs, failures);
    return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hiroba::sim_test

int main(int argc, char** argv) {
    const std::uint64_t first = argc > 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
    const std::uint64_t last = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
    if (first == 0 || last < first || argc > 4) {
        std::fprintf(stderr, "usage: sim_acp_order FIRST LAST [first] [try=SEED]; seeds from 1\n");
        return 64;
    }
    return hiroba::sim_test::run(first, last, argc == 4 && std::strcmp(argv[3], "first") == 0);
}
