// SPDX-License-Identifier: BSD-3-Clause
// Role: memory that comes and goes after connect(), over any wire: of all nodes, of one, and a
// program's own, thousands of times; swaps of 16 bytes by all nodes at once; and what is refused.
// Usage: net_face_later [rounds]
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "net_face/job.hpp"

namespace net_face {
namespace {

using net::Ended;
using net::Wide;

struct Node {
    net::Network& network;
    std::uint64_t rounds;
    std::string why{};

    std::uint32_t self() const { return network.self().value; }
    NodeId next() const { return NodeId{(self() + 1) % network.nodes()}; }
    std::uint32_t before() const { return (self() + network.nodes() - 1) % network.nodes(); }
    void done(Ended ended, const char* what) {
        require(ended == Ended::done, [&] { return std::string(what) + ": " + why; });
        step();
    }
    template <class Value>
    Value must(std::optional<Value> made) {
        require(made.has_value(), [&] { return why; });
        step();
        return *made;
    }
    /// The line of what has failed.
    void refused(bool good, const char* words) {
        require(!good && why.find(words) != why.npos && why.find('\n') == why.npos,
                [&] { return "not refused: " + std::string(words) + ": " + why; });
    }
    /// What every node has exposed.
    std::vector<net::Exposed> tell(const net::Exposed& mine) {
        std::vector<net::Exposed> all(network.nodes());
        network.all_gather(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(all)));
        return all;
    }

    void together();
    void alone();
    void own();
    void own_words();
    void wide(net::Handle early);
    void many();
    void refusals(net::Handle early);
};

/// Pieces of all sizes come and go in another order; each is zeroed, and the neighbour's writes
/// come to it alone.
void Node::together() {
    constexpr std::size_t live_max = 5;
    std::vector<std::pair<net::Handle, std::size_t>> live;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        const std::size_t bytes = 1 + round * 7919 % 70'000;
        const net::Handle made = must(network.allocate(bytes, &why));
        const std::span<std::byte> here = network.local(made);
        require(here.size() == bytes, "a piece of another size");
        for (const std::byte each : here) require(each == std::byte{0}, "a piece is not zeroed");
        network.barrier();
        std::vector<std::byte> row(bytes, std::byte(1 + self() + round % 100));
        done(network.write(next(), {made, 0}, row, &why), "a write");
        network.barrier();
        for (const std::byte each : here)
            require(each == std::byte(1 + before() + round % 100), "a write went astray");
        live.emplace_back(made, bytes);
        if (live.size() < live_max) continue;
        const std::size_t gone = round % live.size();
        const net::Handle old = live[gone].first;
        require(network.free(old, &why), [&] { return why; });
        require(network.local(old).empty(), "a piece that was freed is there");
        refused(network.write(next(), {old, 0}, row, &why) != Ended::refused, "is not registered");
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    for (const auto& [handle, bytes] : live) require(network.free(handle, &why), "free");
}

/// Each node exposes a piece of a size of its own; all write their place in all of them.
void Node::alone() {
    for (std::uint64_t round = 0; round < rounds / 4 + 1; ++round) {
        const std::size_t bytes = 8 * (network.nodes() + 1 + self() + round * 1000);
        const auto all = tell(must(network.expose(bytes, &why)));
        std::vector<net::Handle> handles;
        for (const net::Exposed& each : all) handles.push_back(must(network.attach(each, &why)));
        const auto here = network.local<std::uint64_t>(handles[self()]);
        require(here.size() == bytes / 8, "an exposed piece of another size");
        for (const std::uint64_t word : here) require(word == 0, "an exposed piece is not zeroed");
        network.barrier();
        for (std::uint32_t of = 0; of < all.size(); ++of) {
            const std::uint64_t value = 100 * of + self();
            done(network.write_value(NodeId{of}, {handles[of], 8 * self()}, value, &why),
                 "a write");
            std::uint64_t last = 0, old = 0;
            done(network.read_value(NodeId{of}, {handles[of], 8 * self()}, last, &why), "a read");
            require(last == value, "what was read");
            done(network.atomic_add(NodeId{of}, {handles[of], all[of].bytes - 8}, 2, old, &why),
                 "add");
            refused(network.read_value(NodeId{of}, {handles[of], all[of].bytes - 7}, last, &why) !=
                        Ended::refused,
                    "which has");
        }
        network.barrier();
        for (std::uint32_t of = 0; of + 1 < all.size(); ++of)
            require(here[of] == 100 * self() + of, "a word of another");
        for (const net::Handle each : handles) network.deregister(each);
        network.barrier();
        require(network.withdraw(all[self()], &why), [&] { return why; });
        refused(network.withdraw(all[self()], &why), "is not exposed");
        refused(network.withdraw(all[next().value], &why),
                network.nodes() == 1 ? "is not exposed" : "by that node alone");
    }
}

/// The program's own memory, at an odd address and longer than a message.
void Node::own() {
    constexpr std::size_t bytes = 200'003;
    std::vector<std::byte> memory(bytes + 1), row(bytes), back(bytes);
    const std::span<std::byte> mine = std::span(memory).subspan(1);
    for (std::uint64_t round = 0; round < rounds / 8 + 1; ++round) {
        const auto all = tell(must(network.expose(mine, &why)));
        const net::Handle there = must(network.attach(all[next().value], &why));
        const net::Handle here = must(network.attach(all[self()], &why));
        require(network.local(here).data() == mine.data(), "own memory is elsewhere");
        require(network.mapped(there, next()) == nullptr, "own memory is mapped");
        for (std::size_t i = 0; i < bytes; ++i)
            row[i] = static_cast<std::byte>(i * 13 + round + self());
        done(network.write(next(), {there, 0}, row, &why), "a long write");
        done(network.read(next(), {there, 0}, back, &why), "a long read");
        require(back == row, "what a long read brought");
        done(network.write(next(), {there, bytes}, {}, &why), "no bytes");
        refused(network.read(next(), {there, 1}, back, &why) != Ended::refused, "which has 200003");
        network.barrier();
        for (std::size_t i = 0; i < bytes; ++i)
            require(mine[i] == static_cast<std::byte>(i * 13 + round + before()), "a long row");
        // Requests of all sorts under way at once, with what was written as the local end.
        net::Pending pending;
        for (std::uint64_t i = 0; i < 40; ++i) {
            accepted(network, [&] {
                return network.try_read_async({next(),
                                               {there, i * 3},
                                               network.anywhere(&back[i * 9]),
                                               9,
                                               pending.callback()});
            });
        }
        require(network.wait(pending), "a node was lost");
        for (std::size_t i = 0; i < 40; ++i)
            require(std::memcmp(&back[i * 9], &row[i * 3], 9) == 0, "one of many reads");
        network.deregister(there);
        network.deregister(here);
        network.barrier();
        require(network.withdraw(all[self()], &why), [&] { return why; });
        refused(network.attach(all[self()], &why).has_value(), "is not exposed");
    }
}

/// Atomics on own memory, by threads of all nodes; its owner's processor joins in.
void Node::own_words() {
    alignas(16) std::array<std::uint64_t, 4> words{};
    std::array<std::uint32_t, 2> narrow{};
    const auto all = tell(must(network.expose(std::span(words), &why)));
    const auto narrows = tell(must(network.expose(std::span(narrow), &why)));
    const net::Handle at = must(network.attach(all[0], &why));
    const net::Handle half = must(network.attach(narrows[0], &why));
    const auto count = [&] {
        std::string line;
        for (std::uint64_t i = 0; i < rounds; ++i) {
            std::uint64_t old = 0;
            std::uint32_t old32 = 0;
            require(network.atomic_add(NodeId{0}, {at, 0}, 3, old, &line) == Ended::done,
                    line.c_str());
            require(network.atomic_add(NodeId{0}, {half, 4}, 5, old32, &line) == Ended::done,
                    line.c_str());
            double before = 0;
            require(network.atomic_add(NodeId{0}, {at, 8}, 0.5, before, &line) == Ended::done,
                    line.c_str());
            step();
        }
    };
    std::thread second(count);
    count();
    second.join();
    for (std::uint64_t i = 0; self() == 0 && i < rounds; ++i)
        std::atomic_ref<std::uint64_t>(words[0]).fetch_add(1);
    network.barrier();
    if (self() == 0) {
        const std::uint64_t times = 2 * rounds * network.nodes();
        double sum = 0;
        std::memcpy(&sum, &words[1], sizeof sum);
        require(words[0] == 3 * times + rounds && narrow[1] == 5 * times && narrow[0] == 0,
                "a sum of own words");
        require(sum == 0.5 * static_cast<double>(times), "a sum of doubles");
    }
    std::uint64_t old = 0;
    refused(network.atomic_add(NodeId{0}, {at, 4}, 1, old, &why) != Ended::refused, "no multiple");
    network.barrier();
    require(network.withdraw(all[self()], &why) && network.withdraw(narrows[self()], &why),
            "withdraw");
}

/// Both words grow together by all nodes' swaps, in memory of every sort.
void Node::wide(net::Handle early) {
    alignas(16) std::array<std::uint64_t, 4> mine{};
    const net::Handle later = must(network.allocate(64, &why));
    const net::Handle own =
        must(network.attach(tell(must(network.expose(std::span(mine), &why)))[0], &why));
    for (const net::Handle memory : {early, later, own}) {
        for (std::uint64_t i = 0; i < rounds; ++i) {
            Wide seen{}, wanted{};
            Wide expected{};
            do {
                expected = seen;
                wanted = {expected.low + 1, expected.high + 7};
                done(network.compare_swap(NodeId{0}, {memory, 16}, expected, wanted, seen, &why),
                     "a swap");
            } while (seen != expected);
            std::uint64_t old = 0;
            done(network.atomic_add(NodeId{0}, {memory, 24}, 1, old, &why),
                 "an addition to its half");
        }
        network.barrier();
        Wide seen{};
        done(network.compare_swap(NodeId{0}, {memory, 16}, {9, 9}, {1, 1}, seen, &why), "a look");
        const std::uint64_t times = rounds * network.nodes();
        require(seen == Wide{times, 8 * times}, "swaps were lost");
        refused(network.compare_swap(NodeId{0}, {memory, 8}, {}, {}, seen, &why) != Ended::refused,
                "no multiple");
        refused(network.compare_swap(NodeId{0}, {memory, 1 << 20}, {}, {}, seen, &why) !=
                    Ended::refused,
                "which has");
        refused(network.compare_swap(NodeId{network.nodes()}, {memory, 0}, {}, {}, seen, &why) !=
                    Ended::refused,
                "of a job of");
    }
    network.barrier();
}

/// More handles than there ever were, and none of those that are gone is taken for another.
void Node::many() {
    constexpr std::size_t count = 6000;
    std::vector<std::uint64_t> words(count);
    std::vector<net::Handle> handles;
    for (std::size_t i = 0; i < count; ++i) {
        words[i] = i;
        handles.push_back(must(network.register_local(std::span(&words[i], 1), &why)));
    }
    for (std::size_t i = 0; i < count; ++i)
        require(network.local<std::uint64_t>(handles[i])[0] == i, "a handle of another's memory");
    const net::Handle first = handles[1500];
    for (const net::Handle each : handles) network.deregister(each);
    for (const net::Handle each : handles) network.deregister(each);
    for (std::size_t i = 0; i < 4 * count; ++i) {
        const net::Handle fresh =
            must(network.register_local(std::span(&words[i % count], 1), &why));
        require(fresh.value != first.value && network.local(first).empty(),
                "an old handle is back");
        network.deregister(fresh);
    }
}

void Node::refusals(net::Handle early) {
    constexpr std::size_t huge = std::size_t{1} << 45;
    refused(network.allocate(0, &why).has_value(), "of 0 bytes");
    refused(network.allocate(huge, &why).has_value(),
            "no room for 35184372088832 bytes on every node");
    refused(network.expose(huge, &why).has_value(), "no room to expose 35184372088832 bytes");
    refused(network.expose(std::size_t{0}, &why).has_value(), "of 0 bytes");
    refused(network.expose(std::span<std::byte>(), &why).has_value(), "of 0 bytes");
    refused(network.attach({}, &why).has_value(), "none that a node has exposed");
    refused(network.attach({.node = NodeId{99}, .bytes = 8}, &why).has_value(),
            "of node 99: there are");
    refused(network.attach({.node = next(), .number = 64, .bytes = 8}, &why).has_value(),
            "none that a node");
    refused(network.attach({.kind = 5, .bytes = 8}, &why).has_value(),
            "no memory that expose() has made");
    refused(network.free(early, &why), "not of memory allocated after connect()");
    if (network.nodes() == 1) return;
    const std::size_t bytes = 100 + self();
    refused(network.allocate(bytes, &why).has_value(),
            self() == 0 ? "node 1 allocates 101 bytes, node 0 100" : "node 0 allocates 100 bytes");
    const auto all = tell(must(network.expose(64, &why)));
    const net::Handle there = must(network.attach(all[next().value], &why));
    std::uint64_t value = 0;
    refused(network.read_value(network.self(), {there, 0}, value, &why) != Ended::refused,
            "is of memory of node");
    require(network.local(there).empty(), "another's memory is local");
    const net::WriteParams params{
        .target = next(), .from = {there, 0}, .to = {there, 0}, .bytes = 8};
    require(network.why_refused(params).find("of `from` is of memory of node") != std::string::npos,
            "a far local end");
}

int run(std::uint64_t rounds) {
    auto network = open_network();
    std::string why;
    const auto early = network->allocate(4096, &why);
    require(early.has_value(), why.c_str());
    require(!network->expose(8, &why) && why.find("before connect()") != why.npos, "exposed early");
    require(network->connect(&why), why.c_str());
    watch_steps();
    Node node{*network, rounds};
    node.together();
    node.alone();
    node.own();
    node.own_words();
    node.wide(*early);
    node.many();
    node.refusals(*early);
    network->barrier();
    if (network->self().value == 0)
        std::printf("%lu later rounds on %u nodes over %s: right\n", rounds, network->nodes(),
                    network->provider());
    return 0;
}

/// A node goes on with memory that was withdrawn: its owner says so, and the job ends.
int withdrawn() {
    auto network = open_network();
    std::string why;
    require(network->connect(&why), why.c_str());
    std::uint64_t word = 7;
    const auto mine = network->expose(std::span(&word, 1), &why);
    net::Exposed of_zero = *mine;
    network->broadcast(NodeId{0}, std::as_writable_bytes(std::span(&of_zero, 1)));
    const auto there = network->attach(of_zero, &why);
    std::uint64_t seen = 0;
    require(network->read_value(NodeId{0}, {*there, 0}, seen, &why) == Ended::done && seen == 7,
            "a read");
    network->barrier();
    if (network->self().value == 0) require(network->withdraw(*mine, &why), why.c_str());
    network->barrier();
    if (network->self().value == 1) (void)network->read_value(NodeId{0}, {*there, 0}, seen, &why);
    network->barrier();
    wrong("memory that was withdrawn was read");
}

}  // namespace
}  // namespace net_face

int main(int count, char** words) {
    if (count > 1 && std::string(words[1]) == "withdrawn") return net_face::withdrawn();
    return net_face::run(count > 1 ? std::strtoull(words[1], nullptr, 0) : 40);
}
