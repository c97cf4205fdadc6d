// SPDX-License-Identifier: BSD-3-Clause
// Role: remote procedures over any wire: arguments and results of all sorts, calls from handlers
// and continuations, thousands under way; and calls that nobody can answer. Usage:
// net_face_procedures [rounds], or procedures WHAT for a mistake that ends it.
#include <signal.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "hiroba/net_procedures.hpp"
#include "net_face/job.hpp"

namespace net_face {

using net::call;
using net::Caller;
using net::Future;

struct Point {
    double x, y;
    std::uint8_t tag;
};

std::map<std::uint64_t, std::uint64_t> stored;  // handlers run one at a time
std::atomic<std::uint64_t> poked{0}, hops{0};

std::uint64_t insert(std::uint64_t key, std::uint64_t value) {
    const std::uint64_t old = stored[key];
    stored[key] = value;
    return old;
}
Point mirror(const Caller& caller, Point point, std::int32_t by) noexcept {
    return {point.y * by, point.x, static_cast<std::uint8_t>(point.tag + caller.from.value)};
}
std::uint64_t sum(std::uint16_t first, std::span<const std::byte> bytes) {
    std::uint64_t all = first;
    for (const std::byte each : bytes) all += static_cast<std::uint64_t>(each);
    return all;
}
std::array<std::uint64_t, 500> long_result(std::uint64_t seed) {
    std::array<std::uint64_t, 500> made;
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = seed + i;
    return made;
}
void poke() { poked.fetch_add(1); }
/// Goes on from node to node, from handler to handler.
void hop(const Caller& caller, std::uint32_t left) {
    hops.fetch_add(1);
    if (left == 0) return;
    net::Network& network = caller.network;
    call<&hop>(network, NodeId{(network.self().value + 1) % network.nodes()}, left - 1);
}
int overloaded(int value) { return value + 1; }
double overloaded(double value) { return value / 2; }

namespace {

struct Work {
    net::Network& network;
    std::uint64_t rounds;
    NodeId next() const { return NodeId{(network.self().value + 1) % network.nodes()}; }

    void kinds() const;
    void many(std::uint64_t thread) const;
    void chains() const;
    void around() const;
};

void Work::kinds() const {
    const std::uint32_t self = network.self().value;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        const auto point = call<&mirror>(network, next(), Point{1.5, 2.5, 3}, -2).get();
        require(point && point->x == -5 && point->y == 1.5 && point->tag == 3 + self, "a point");
        std::vector<std::byte> bytes(i * 311 % 60'000, std::byte{3});
        require(call<&sum>(network, next(), std::uint16_t{7}, bytes).get() == 7 + 3 * bytes.size(),
                "a sum of bytes");
        const auto row = call<&long_result>(network, next(), i).get();
        require(row && (*row)[499] == i + 499, "a long result");
        require(call<&poke>(network, next()).wait(), "a poke");
        require(call<static_cast<int (*)(int)>(&overloaded)>(network, next(), 4).get() == 5,
                "an int");
        require(call<static_cast<double (*)(double)>(&overloaded)>(network, next(), 4).get() == 2.0,
                "a double");
        step();
    }
    network.barrier();
    require(poked.load() == rounds, "pokes of the node before");
}

/// Keys of this thread alone, on all nodes.
void Work::many(std::uint64_t thread) const {
    const std::uint64_t mine = (network.self().value * 8 + thread) << 32;
    for (std::uint64_t again = 0; again < 2; ++again) {
        std::vector<Future<std::uint64_t>> all;
        for (std::uint64_t i = 0; i < 40 * rounds; ++i) {
            const NodeId to{static_cast<std::uint32_t>(i % network.nodes())};
            all.push_back(call<&insert>(network, to, mine + i, i + 1));
        }
        for (std::uint64_t i = 0; i < all.size(); ++i)
            require(all[i].get() == (again == 0 ? 0 : i + 1), "what was stored");
        step();
    }
}

void Work::chains() const {
    std::atomic<std::uint64_t> seen{0};
    for (std::uint64_t i = 0; i < rounds; ++i) {
        const std::uint64_t key = (network.self().value + 1) * 1000 + 5000 * rounds + i;
        const auto doubled = call<&insert>(network, next(), key, i + 40)
                                 .then([&](std::uint64_t old) { return old + 7; })
                                 .then([&](std::uint64_t value) {
                                     seen.fetch_add(value);
                                     return 0.5 * static_cast<double>(value);
                                 });
        const auto empty = call<&poke>(network, network.self()).then([&] { seen.fetch_add(1); });
        require(doubled.get() == 3.5, "a chain");
        require(empty.wait() && empty.ready(), "a chain of nothing");
        bool ran = false;
        doubled.then([&](double value) { ran = value == 3.5; });
        require(ran, "a continuation of what is over");
        step();
    }
    require(seen.load() == 8 * rounds, "continuations");
}

void Work::around() const {
    network.barrier();
    const std::uint32_t length = 20 * network.nodes() - 1;
    call<&hop>(network, next(), length);
    network.wait_until([&] { return hops.load() == 20 * network.nodes(); });
    network.barrier();
}

int run(std::uint64_t rounds) {
    auto network = open_network();
    std::string why;
    require(network->connect(&why), why.c_str());
    watch_steps();
    const Work work{*network, rounds};
    work.kinds();
    std::thread second([&] { work.many(1); });
    work.many(0);
    second.join();
    work.chains();
    work.around();
    network->barrier();
    if (network->self().value == 0)
        std::printf("%lu rounds of procedures on %u nodes over %s: right\n", rounds,
                    network->nodes(), network->provider());
    return 0;
}

void waits(const Caller& caller) { caller.network.barrier(); }

int mistake(std::string_view what) {
    auto network = open_network();
    require(network->connect(nullptr), "connect");
    if (network->self().value == 0) {
        const std::vector<std::byte> bytes(1 << 20);
        if (what == "too_long") call<&sum>(*network, NodeId{1}, std::uint16_t{1}, bytes);
        if (what == "no_node") call<&poke>(*network, NodeId{7});
        if (what == "waits") call<&waits>(*network, NodeId{1}).wait();
        if (what == "unknown") {
            std::uint64_t result = 0;
            network->try_procedure_async({.target = NodeId{1},
                                          .id = 12345,
                                          .result = std::as_writable_bytes(std::span(&result, 1))});
        }
    }
    network->wait_until([] { return false; });
    return 0;
}

int lost() {
    auto network = open_network();
    require(network->connect(nullptr), "connect");
    const NodeId last{network->nodes() - 1};
    bool ran = false;
    if (network->self() == last) {
        while (poked.load() < 2 * last.value) network->pause();
        raise(SIGKILL);
    }
    require(call<&poke>(*network, last).wait(), "a poke");
    call<&poke>(*network, last);  // the answer to the first has come
    while (call<&insert>(*network, last, 1, 2).get()) step();
    const auto later = call<&insert>(*network, last, 1, 2).then([&](std::uint64_t) { ran = true; });
    require(!later.wait() && !ran, "a continuation of a dead node");
    std::printf("node %u went on\n", network->self().value);
    std::fflush(stdout);
    network->wait_until([] { return false; }, 300'000'000);
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
