// SPDX-License-Identifier: BSD-3-Clause
// Role: misses hidden: tasks that each follow a chain of places in another node's memory, beside
// the same chains one after the other. The answers are checked; so is that tasks waited at the same
// time. Usage: tasks_chase [tasks] [steps] [net|gas]
#include <chrono>
#include <cstring>
#include <vector>

#include "hiroba/gas.hpp"
#include "hiroba/tasks_gas.hpp"
#include "tasks/job.hpp"

namespace tasks_test {
namespace {

namespace gas = hiroba::gas;
constexpr std::uint64_t places = 4096;

/// Where the chain goes on from a place: one cycle through all.
std::uint64_t next_of(std::uint64_t place) { return (place * 5 + 1013) % places; }

struct Chains {
    std::uint64_t tasks, steps;

    std::uint64_t first(std::uint64_t chain) const { return chain * 61 % places; }
    std::uint64_t last(std::uint64_t chain) const {
        std::uint64_t place = first(chain);
        for (std::uint64_t i = 0; i < steps; ++i) place = next_of(place);
        return place;
    }
};

struct Seconds {
    double in_turn, by_tasks;
};

template <class Follow>
double timed(Follow follow) {
    const auto begin = std::chrono::steady_clock::now();
    follow();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// @param look  reads what lies at a place; `yields`: by a call that lets other tasks run
template <class Look>
Seconds follow_all(const Chains& chains, Look look) {
    const auto follow = [&](std::uint64_t chain, bool yields) {
        std::uint64_t place = chains.first(chain);
        for (std::uint64_t i = 0; i < chains.steps; ++i) place = look(place, yields);
        require(place == chains.last(chain), "a chain ends at " + std::to_string(place));
    };
    Seconds took{};
    took.in_turn = timed([&] {
        for (std::uint64_t chain = 0; chain < chains.tasks; ++chain) follow(chain, false);
    });
    took.by_tasks = timed([&] {
        tasks::Group group;
        for (std::uint64_t chain = 0; chain < chains.tasks; ++chain)
            group.run([&follow, chain] { follow(chain, true); });
    });
    return took;
}

std::uint64_t under_way = 0, under_way_most = 0;

Seconds over_net(Job& job, const net::Handle& memory, const Chains& chains) {
    Seconds took{};
    job.scheduler->run([&] {
        took = follow_all(chains, [&](std::uint64_t place, bool yields) {
            const NodeId other{job.network->nodes() - 1};
            std::uint64_t found = 0;
            const net::RemoteAddress at{memory, place * 8};
            under_way_most = std::max(under_way_most, ++under_way);
            const net::Ended ended = yields ? tasks::get_value(*job.network, other, at, found)
                                            : job.network->read_value(other, at, found);
            --under_way;
            require(ended == net::Ended::done, "a read failed");
            return found;
        });
        std::string why;
        std::uint64_t nothing = 0;
        require(tasks::get_value(*job.network, NodeId{99}, {memory, 0}, nothing, &why) ==
                        net::Ended::refused &&
                    why.find("99") != std::string::npos,
                "a read from no node is not refused");
    });
    return took;
}

Seconds over_gas(Job& job, gas::space& space, gas::ptr<std::uint64_t> memory,
                 const Chains& chains) {
    Seconds took{};
    job.scheduler->run([&] {
        took = follow_all(chains, [&](std::uint64_t place, bool yields) {
            std::uint64_t found = 0;
            const gas::ptr<std::uint64_t> at = memory + static_cast<std::int64_t>(place);
            under_way_most = std::max(under_way_most, ++under_way);
            const bool good = yields ? static_cast<bool>(tasks::get(space, at, found))
                                     : static_cast<bool>(space.get(at, found));
            --under_way;
            require(good, "a get failed");
            return found;
        });
    });
    return took;
}

}  // namespace
}  // namespace tasks_test

int main(int count, char** words) {
    using namespace tasks_test;
    const Chains chains{count > 1 ? std::strtoull(words[1], nullptr, 10) : 64,
                        count > 2 ? std::strtoull(words[2], nullptr, 10) : 50};
    const bool is_gas = count > 3 && std::strcmp(words[3], "gas") == 0;
    std::string why;
    auto network = net::Network::open(&why);
    if (network == nullptr) wrong(why);
    const auto memory = network->allocate(places * 8, &why);
    Job job(std::move(network), {});
    for (std::uint64_t place = 0; place < places; ++place)
        job.network->local<std::uint64_t>(*memory)[place] = next_of(place);
    const auto space = is_gas ? gas::space::open(&why) : nullptr;
    gas::ptr<std::uint64_t> shared;
    if (is_gas) {
        if (space == nullptr) wrong(why);
        shared = space->allocate_together<std::uint64_t>(places,
                                                         gas::Distribution::on(space->ranks() - 1));
        if (!job.is_first())
            for (std::uint64_t place = 0; place < places; ++place)
                require(static_cast<bool>(
                            space->put(shared + static_cast<std::int64_t>(place), next_of(place))),
                        "a put failed");
        space->barrier();
    }
    job.network->barrier();
    const Seconds took =
        is_gas ? over_gas(job, *space, shared, chains) : over_net(job, *memory, chains);
    if (!job.is_first()) return 0;
    const std::uint64_t switched = job.scheduler->counts().suspended;
    const bool has_wire = std::strcmp(job.network->provider(), "udp") == 0;
    require(!has_wire || under_way_most > chains.tasks / 2,
            "at most " + std::to_string(under_way_most) + " reads were under way at once");
    require(!has_wire || is_gas || switched > chains.tasks, "tasks kept the worker");
    std::printf(
        "%llu chains of %llu steps by %s over %s: right; in turn %.6f s, by tasks %.6f s, "
        "%.1f times as fast, %llu at once\n",
        static_cast<unsigned long long>(chains.tasks),
        static_cast<unsigned long long>(chains.steps), is_gas ? "gas" : "net",
        job.network->provider(), took.in_turn, took.by_tasks, took.in_turn / took.by_tasks,
        static_cast<unsigned long long>(under_way_most));
}
