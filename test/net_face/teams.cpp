// SPDX-License-Identifier: BSD-3-Clause
// Role: teams over any wire: blocking collectives of teams of all sizes against what they should
// bring, many started at once in teams that overlap, and calls that differ.
// Usage: net_face_teams [rounds], or teams WHAT for a mistake that ends it.
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "hiroba/net_teams.hpp"
#include "net_face/job.hpp"

namespace net_face {
namespace {

using net::Pending;
using net::Team;

std::uint64_t product_of_sums(std::uint64_t a, std::uint64_t b) { return a + b; }

struct Checks {
    net::Network& network;
    std::uint64_t seed = 0;

    /// What member `m` brings in place `i`.
    std::uint64_t value(std::uint32_t m, std::size_t i) const { return seed * 1000 + m * 100 + i; }
    std::vector<std::uint64_t> row(std::uint32_t m, std::size_t count) const {
        std::vector<std::uint64_t> made(count);
        for (std::size_t i = 0; i < count; ++i) made[i] = value(m, i);
        return made;
    }
    void all(Team& team, std::size_t count);
    void floats(Team& team);
    void started(Team& team);
};

auto in(const std::vector<std::uint64_t>& values) { return std::as_bytes(std::span(values)); }
auto out(std::vector<std::uint64_t>& values) { return std::as_writable_bytes(std::span(values)); }

void Checks::all(Team& team, std::size_t count) {
    const std::uint32_t size = team.size(), self = team.self();
    const auto mine = row(self, count);
    for (std::uint32_t root = 0; root < size; ++root, ++seed) {
        auto data = self == root ? row(root, count) : std::vector<std::uint64_t>(count);
        team.broadcast(root, out(data));
        require(data == row(root, count), "a broadcast");
        std::vector<std::uint64_t> gathered(self == root ? count * size : 0);
        const auto here = row(self, count);
        team.gather(root, in(here), out(gathered));
        for (std::size_t i = 0; i < gathered.size(); ++i)
            require(gathered[i] == value(static_cast<std::uint32_t>(i / count), i % count),
                    "a gather");
        auto sums = row(self, count);
        team.reduce(root, std::span(sums), product_of_sums);
        for (std::size_t i = 0; self == root && i < count; ++i) {
            std::uint64_t sum = 0;
            for (std::uint32_t m = 0; m < size; ++m) sum += value(m, i);
            require(sums[i] == sum, "a sum at the root");
        }
        step();
    }
    const auto now = row(self, count);
    std::vector<std::uint64_t> every(count * size), pieces(count * size), got(count * size);
    team.all_gather(in(now), out(every));
    for (std::uint32_t to = 0; to < size; ++to)
        for (std::size_t i = 0; i < count; ++i) pieces[to * count + i] = value(self, i) * 7 + to;
    team.all_to_all(in(pieces), out(got), count * 8);
    auto least = row(self, count);
    team.all_reduce(std::span(least),
                    [](std::uint64_t a, std::uint64_t b) { return std::min(a, b); });
    for (std::uint32_t m = 0; m < size; ++m) {
        for (std::size_t i = 0; i < count; ++i) {
            require(every[m * count + i] == value(m, i), "an all-gather");
            require(got[m * count + i] == value(m, i) * 7 + self, "an all-to-all");
            require(least[i] == value(0, i), "a minimum");
        }
    }
    team.barrier();
    ++seed;
}

/// All members have the same bits, and the same ones each time.
void Checks::floats(Team& team) {
    double first = 0;
    for (int again = 0; again < 3; ++again) {
        double sum = 1.0 / (3 + team.self());
        team.all_reduce(std::span(&sum, 1), std::plus<>{});
        std::vector<double> all(team.size());
        team.all_gather(std::as_bytes(std::span(&sum, 1)), std::as_writable_bytes(std::span(all)));
        for (const double each : all) require(std::memcmp(&each, &sum, 8) == 0, "other bits");
        if (again == 0) first = sum;
        require(first == sum, "other bits the next time");
    }
}

/// Thirty of all kinds under way, none of which is waited for before all have begun.
void Checks::started(Team& team) {
    constexpr std::size_t times = 10, count = 20;
    const std::uint32_t size = team.size(), self = team.self();
    std::vector<std::vector<std::uint64_t>> sums, data, every, mine;
    for (std::size_t i = 0; i < times; ++i) {
        mine.push_back(row(self, count + i));
        sums.push_back(row(self, count + i));
        data.push_back(self == i % size ? row(self, count + i)
                                        : std::vector<std::uint64_t>(count + i));
        every.emplace_back((count + i) * size);
    }
    std::plus<> add;
    Pending pending;
    for (std::size_t i = 0; i < times; ++i) {
        team.start_all_reduce(std::span(sums[i]), add, pending);
        team.start_broadcast(static_cast<std::uint32_t>(i % size), out(data[i]), pending);
        team.start_all_gather(in(mine[i]), out(every[i]), pending);
        team.start_barrier(pending);
    }
    require(network.wait(pending), "a node was lost");
    for (std::size_t i = 0; i < times; ++i) {
        require(data[i] == row(static_cast<std::uint32_t>(i % size), count + i),
                "one of many broadcasts");
        for (std::size_t k = 0; k < count + i; ++k) {
            std::uint64_t sum = 0;
            for (std::uint32_t m = 0; m < size; ++m) {
                sum += value(m, k);
                require(every[i][m * (count + i) + k] == value(m, k), "one of many gathers");
            }
            require(sums[i][k] == sum, "one of many sums");
        }
    }
    ++seed;
    step();
}

int run(std::uint64_t rounds) {
    auto network = open_network();
    std::string why;
    require(network->connect(&why), why.c_str());
    watch_steps();
    {
        const auto world = network->team();
        Checks checks{*network};
        // Teams that overlap: of a number's parity, all in reverse, and of all but the last.
        const std::uint32_t self = world->self(), size = world->size();
        const auto parity = world->split(self % 2, 0);
        const auto reverse = world->split(7, size - self);
        const auto most = world->split(self + 1 == size ? Team::no_color : 3);
        require((most == nullptr) == (self + 1 == size), "no color");
        require(reverse->self() == size - 1 - self && reverse->node(0).value == size - 1,
                "the order");
        require(parity->size() == (size + 1 - self % 2) / 2 &&
                    parity->node(parity->self()) == network->self(),
                "a half");
        for (std::uint64_t round = 0; round < rounds; ++round) {
            checks.seed = round * 10'000;
            const std::size_t count = round % 7 == 0 ? 9000 : round % 5;
            for (Team* const team : {world.get(), parity.get(), reverse.get(), most.get()}) {
                if (team == nullptr) continue;
                checks.seed = round * 10'000;
                checks.all(*team, count);
                checks.floats(*team);
                checks.started(*team);
            }
        }
        // Two threads, each with a team of its own.
        std::thread second([&] {
            Checks mine{*network, 5};
            for (std::uint64_t round = 0; round < rounds; ++round) mine.started(*reverse);
        });
        for (std::uint64_t round = 0; round < rounds; ++round) world->barrier();
        second.join();
        // Teams come and go.
        for (std::uint64_t round = 0; round < rounds; ++round) {
            const auto pair = world->split(self / 2, 0);
            pair->barrier();
        }
        world->barrier();
    }
    if (network->self().value == 0)
        std::printf("%lu rounds of teams on %u nodes over %s: right\n", rounds, network->nodes(),
                    network->provider());
    network->barrier();
    return 0;
}

int mistake(std::string_view what) {
    auto network = open_network();
    require(network->connect(nullptr), "connect");
    const auto team = network->team();
    std::uint64_t word = 0;
    const auto bytes = std::as_writable_bytes(std::span(&word, 1));
    const bool other = network->self().value == 1;
    if (what == "other_kind") other ? team->barrier() : team->broadcast(1, bytes);
    if (what == "other_root") team->broadcast(other ? 1 : 0, bytes);
    if (what == "other_size") {
        std::vector<std::byte> all(team->size() * (other ? 4 : 8));
        team->all_gather(bytes.first(other ? 4 : 8), all);
    }
    if (what == "no_member") team->broadcast(team->size(), bytes);
    if (what == "short") team->all_gather(bytes, bytes);
    if (what == "destroyed") {
        static Pending pending;
        const auto part = team->split(0, 0);
        if (other) network->wait_until([] { return false; });
        part->start_barrier(pending);
    }
    team->barrier();
    network->wait_until([] { return false; });
    return 0;
}

/// A member dies: what is started with it ends, what the others do goes on.
int lost() {
    auto network = open_network();
    require(network->connect(nullptr), "connect");
    const auto world = network->team();
    const std::uint32_t self = world->self(), last = world->size() - 1;
    const auto rest = world->split(self == last ? 1 : 0);
    // A member that has left a collective may be dead before another has: no barrier, but a gather
    // to who dies, which the others start and whose outcome none of them asks for.
    std::vector<std::uint64_t> all(world->size());
    const std::uint64_t word = self;
    Pending told, pending;
    world->start_gather(last, std::as_bytes(std::span(&word, 1)), out(all), told);
    const bool is_told = network->wait(told);
    if (self == last) {
        require(is_told, "the others are here");
        raise(SIGKILL);
    }
    world->start_barrier(pending);
    require(!network->wait(pending), "a barrier of a dead node is over");
    Pending later;
    world->start_barrier(later);
    require(!network->wait(later), "a later barrier of a dead node is over");
    rest->barrier();
    std::printf("member %u went on\n", self);
    std::fflush(stdout);
    rest->barrier();
    network->wait_until([] { return false; }, 200'000'000);
    _exit(0);
}

}  // namespace
}  // namespace net_face

int main(int count, char** words) {
    const std::string_view what = count > 1 ? words[1] : "20";
    if (what == "lost") return net_face::lost();
    if (what[0] < '0' || what[0] > '9') return net_face::mistake(what);
    return net_face::run(std::strtoull(what.data(), nullptr, 0));
}
