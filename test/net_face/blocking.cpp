// SPDX-License-Identifier: BSD-3-Clause
// Role: the blocking forms of hiroba/net.hpp, over any wire: threads of all nodes at the same words
// and rows, the sums checked; and what they refuse. Usage: net_face_blocking [rounds]
#include <array>
#include <cmath>
#include <thread>
#include <vector>

#include "net_face/job.hpp"

namespace net_face {
namespace {

constexpr std::uint32_t threads_of_node = 2;
constexpr std::size_t row_bytes = 3001;
/// Offsets of words of node 0, then of the signals and rows of every thread of the node before.
enum : std::uint64_t {
    at_sum = 0,
    at_double = 8,
    at_float = 16,
    at_min = 24,
    at_max = 32,
    rows = 64
};
constexpr std::uint64_t place_bytes = 4096;

struct Work {
    net::Network& network;
    net::Handle memory;
    std::uint64_t rounds;

    NodeId next() const { return NodeId{(network.self().value + 1) % network.nodes()}; }
    net::RemoteAddress at(std::uint64_t offset) const { return {memory, offset}; }
    void done(net::Ended ended, const char* what, const std::string& why) const {
        require(ended == net::Ended::done, [&] { return std::string(what) + ": " + why; });
        step();
    }
    void count(std::uint32_t thread) const;
    void hand_on(std::uint32_t thread) const;
    void check() const;
    void refusals() const;
};

void Work::count(std::uint32_t thread) const {
    std::string why;
    const double number = network.self().value * threads_of_node + thread;
    std::uint64_t old = 0;
    double half = 0;
    float one = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        done(network.atomic_add(NodeId{0}, at(at_sum), 3, old, &why), "an addition", why);
        done(network.atomic_add(NodeId{0}, at(at_double), 0.5, half, &why), "a double", why);
        done(network.atomic_add(NodeId{0}, at(at_float), 1.0f, one, &why), "a float", why);
        const double value = number * static_cast<double>(i);
        done(network.atomic_min(NodeId{0}, at(at_min), -value, half, &why), "a minimum", why);
        done(network.atomic_max(NodeId{0}, at(at_max), value, half, &why), "a maximum", why);
    }
}

/// Each round: a row with a signal to the next node, and one from the node before.
void Work::hand_on(std::uint32_t thread) const {
    const std::uint64_t place = rows + thread * place_bytes, signal = place + place_bytes - 8;
    const auto here = network.local(memory).subspan(place, row_bytes);
    std::atomic_ref<std::uint64_t> told{network.local<std::uint64_t>(memory)[signal / 8]};
    std::vector<std::byte> row(row_bytes), back(row_bytes);
    std::string why;
    const std::uint32_t before = (network.self().value + network.nodes() - 1) % network.nodes();
    for (std::uint64_t round = 1; round <= rounds; ++round) {
        const auto value = [&](std::uint32_t node) { return std::byte(node * 50 + round % 50); };
        std::fill(row.begin(), row.end(), value(network.self().value));
        const bool adds = round % 2 != 0;
        using Kind = net::Signal::Kind;
        const net::Signal tell{at(signal), adds ? 1 : round, adds ? Kind::add : Kind::set};
        done(network.write_signal(next(), at(place), row, tell, &why), "a write and a signal", why);
        network.wait_until([&] { return told.load() >= round; });
        require(told.load() == round, "a signal came twice");
        for (const std::byte byte : here) require(byte == value(before), "a row is not there");
        done(network.read(next(), at(place), back, &why), "a read", why);
        require(back == row, "what was read");
        // The next row may come when this one was looked at.
        std::uint64_t seen = 0;
        done(network.write_value(NodeId{before}, at(signal - 8), round, &why), "an answer", why);
        std::atomic_ref<std::uint64_t> answer{
            network.local<std::uint64_t>(memory)[(signal - 8) / 8]};
        while ((seen = answer.load()) < round) network.pause();
        require(seen == round, "an answer to another round");
    }
}

void Work::check() const {
    if (network.self().value != 0) return;
    std::string why;
    const double all = static_cast<double>(network.nodes() * threads_of_node);
    std::uint64_t sum = 0;
    double half = 0, least = 0, most = 0;
    float one = 0;
    done(network.read_value(NodeId{0}, at(at_sum), sum, &why), "a read", why);
    done(network.read_value(NodeId{0}, at(at_double), half, &why), "a read", why);
    done(network.read_value(NodeId{0}, at(at_float), one, &why), "a read", why);
    done(network.read_value(NodeId{0}, at(at_min), least, &why), "a read", why);
    done(network.read_value(NodeId{0}, at(at_max), most, &why), "a read", why);
    const auto count = static_cast<double>(rounds);
    require(static_cast<double>(sum) == 3 * all * count, "the sum of integers");
    require(half == 0.5 * all * count && one == static_cast<float>(all * count), "a sum");
    require(most == (all - 1) * (count - 1) && least == -most, "the least or the most");
    const double nan = std::nan("");
    done(network.write_value(NodeId{0}, at(at_min), nan, &why), "a write", why);
    done(network.atomic_min(NodeId{0}, at(at_min), nan, half, &why), "a minimum", why);
    done(network.atomic_max(NodeId{0}, at(at_min), 4.0, half, &why), "a maximum", why);
    require(std::isnan(half), "the value before");
    done(network.atomic_add(NodeId{0}, at(at_min), 0.0, half, &why), "a sum", why);
    require(half == 4.0, "a NaN did not give way");
}

void Work::refusals() const {
    std::string why;
    double value = 7;
    const auto refused = [&](net::Ended ended, const char* text) {
        require(ended == net::Ended::refused && why.find(text) != why.npos && value == 7,
                [&] { return std::string("not refused: ") + text + ": " + why; });
    };
    const NodeId none{network.nodes()};
    refused(network.read_value(none, at(0), value, &why), "of a job of");
    refused(network.write_value(none, at(0), value, &why), "of a job of");
    refused(network.read_value(next(), {net::Handle{}, 0}, value, &why), "no remote handle");
    refused(network.atomic_add(next(), at(4), 1.0, value, &why), "no multiple");
    refused(network.atomic_max(none, at(0), 1.0, value, &why), "of a job of");
    const std::uint64_t end = network.local(memory).size();
    refused(network.write_value(next(), at(end - 4), value, &why), "which has");
    // Nothing is written where the signal is wrong.
    const std::array<std::byte, 8> bytes{std::byte{9}};
    const std::uint64_t place = rows - 8;
    refused(network.write_signal(next(), at(place), bytes, {.at = at(end)}, &why), "which has");
    network.barrier();
    require(network.local(memory)[place] == std::byte{0}, "a refused write wrote");
    require(network.write(next(), at(end), {}) == net::Ended::done, "no bytes at the end");
}

int run(std::uint64_t rounds) {
    auto network = open_network();
    std::string why;
    const auto memory = network->allocate(rows + threads_of_node * place_bytes, &why);
    std::uint64_t word = 0;
    require(network->read_value(NodeId{0}, {*memory, 0}, word, &why) == net::Ended::refused,
            "a read before connect()");
    require(network->connect(&why), [&] { return why; });
    const Work work{*network, *memory, rounds};
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < threads_of_node; ++thread) {
        threads.emplace_back([&work, thread] {
            work.count(thread);
            work.hand_on(thread);
        });
    }
    for (std::thread& thread : threads) thread.join();
    network->barrier();
    work.check();
    network->barrier();
    work.refusals();
    network->barrier();
    if (network->self().value == 0)
        std::printf("%lu blocking rounds on %u nodes over %s: right\n", rounds, network->nodes(),
                    network->provider());
    std::fflush(stdout);
    return 0;
}

}  // namespace
}  // namespace net_face

int main(int argc, char** argv) {
    net_face::watch_steps();
    return net_face::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 40);
}
