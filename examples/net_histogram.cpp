// SPDX-License-Identifier: BSD-3-Clause
// A histogram whose bins lie on all nodes and whose counts come from all threads of all nodes: each
// sample is one remote atomic, with up to 64 of them under way at once.
// Run: hiroba run --spmd -n 2 ./net_histogram [samples of a thread] [threads of a node]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hiroba/net.hpp"

namespace {

namespace net = hiroba::net;
using hiroba::NodeId;
using Count = std::uint32_t;

constexpr std::uint64_t bins_of_node = 256;
constexpr std::uint64_t under_way_max = 64;

std::uint64_t mixed(std::uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/// The bin of a thread's sample; everybody can compute everybody's.
std::uint64_t bin_of(std::uint64_t node, std::uint64_t thread, std::uint64_t sample,
                     std::uint64_t bins) {
    const std::uint64_t a = mixed(node << 40 | thread << 32 | sample);
    return (a % bins + (a >> 32) % bins) / 2;  // more in the middle
}

/// Adds the samples of one thread. False when an argument was refused or a node was lost.
bool add_samples(net::Network& network, net::Handle bins, std::uint64_t thread,
                 std::uint64_t samples) {
    const std::uint64_t all_bins = bins_of_node * network.nodes();
    net::Pending pending;
    bool good = true;
    for (std::uint64_t i = 0; i < samples && good; ++i) {
        if (i % under_way_max == 0) network.wait(pending);
        const std::uint64_t bin = bin_of(network.self().value, thread, i, all_bins);
        const net::AtomicParams one{
            .target = NodeId{static_cast<std::uint32_t>(bin / bins_of_node)},
            .at = {bins, bin % bins_of_node * sizeof(Count)},
            .op = net::AtomicOp::fetch_add,
            .bytes = sizeof(Count),
            .operand = 1,  // no `old`: nobody needs the count before
            .on_complete = pending.callback()};
        good = network.insist([&] { return network.try_atomic_async(one); }) ==
               net::Submission::accepted;
        if (good) continue;
        std::fprintf(stderr, "%s\n", network.why_refused(one).c_str());
    }
    return network.wait(pending) && good;
}

/// Whether this node's bins hold what all threads' samples make.
bool right(net::Network& network, net::Handle bins, std::uint64_t threads, std::uint64_t samples) {
    std::vector<Count> wanted(bins_of_node);
    for (std::uint64_t node = 0; node < network.nodes(); ++node)
        for (std::uint64_t thread = 0; thread < threads; ++thread)
            for (std::uint64_t i = 0; i < samples; ++i) {
                const std::uint64_t bin = bin_of(node, thread, i, bins_of_node * network.nodes());
                if (bin / bins_of_node == network.self().value) ++wanted[bin % bins_of_node];
            }
    const std::span<Count> counted = network.local<Count>(bins);
    for (std::uint64_t bin = 0; bin < bins_of_node; ++bin)
        if (counted[bin] != wanted[bin]) return false;
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t samples = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000;
    const std::uint64_t threads = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2;
    if (samples == 0 || threads == 0 || threads > 64) {
        std::fprintf(stderr, "usage: net_histogram [samples, from 1] [threads, 1 to 64]\n");
        return 64;
    }
    std::string why;
    const auto network = net::Network::open(&why);
    const auto bins =
        network == nullptr ? std::nullopt : network->allocate(bins_of_node * sizeof(Count), &why);
    if (!bins || !network->connect(&why)) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    std::vector<char> added(threads, 0);
    const auto add = [&](std::uint64_t thread) {
        added[thread] = add_samples(*network, *bins, thread, samples);
    };
    std::vector<std::thread> others;
    for (std::uint64_t thread = 1; thread < threads; ++thread) others.emplace_back(add, thread);
    add(0);
    for (std::thread& other : others) other.join();
    network->barrier();  // every node's samples are in

    std::uint64_t good = right(*network, *bins, threads, samples) ? 1 : 0;
    for (const char each : added) good &= each != 0 ? 1 : 0;
    good = network->all_reduce(good, std::bit_and<>{});
    if (network->self() == NodeId{0}) {
        std::printf("%lu samples of %lu threads on each of %u nodes: VERIFICATION %s\n", samples,
                    threads, network->nodes(), good != 0 ? "SUCCESSFUL" : "FAILED");
    }
    return good != 0 ? 0 : 1;
}
