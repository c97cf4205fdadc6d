// SPDX-License-Identifier: BSD-3-Clause
// Heat in a rod that is cut into one piece for each node: a step writes the two end cells into the
// neighbours' memory, computes the inner cells while that is under way, and meets everybody.
// Run: hiroba run --spmd -n 2 ./net_heat [cells of a node] [steps]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "hiroba/net.hpp"

namespace {

namespace net = hiroba::net;
using hiroba::NodeId;

constexpr double conduction = 0.25;

/// Two copies of this node's cells, each with a cell of either neighbour around it.
struct Rod {
    net::Network& network;
    net::Handle memory;
    std::uint64_t cells;

    std::uint64_t at(std::uint64_t step, std::uint64_t cell) const {
        return step % 2 * (cells + 2) +
               cell;  // cells are 1 to `cells`; 0 and cells + 1 are others'
    }
    double& value(std::uint64_t step, std::uint64_t cell) const {
        return network.local<double>(memory)[at(step, cell)];
    }
    /// Starts writing a cell of ours to where `node` looks for it.
    bool give(NodeId node, std::uint64_t step, std::uint64_t from, std::uint64_t to,
              net::Pending& pending) const {
        const net::WriteParams write{.target = node,
                                     .from = {memory, at(step, from) * sizeof(double)},
                                     .to = {memory, at(step, to) * sizeof(double)},
                                     .bytes = sizeof(double),
                                     .on_complete = pending.callback()};
        if (network.insist([&] { return network.try_write_async(write); }) ==
            net::Submission::accepted) {
            return true;
        }
        std::fprintf(stderr, "%s\n", network.why_refused(write).c_str());
        return false;
    }
    void compute(std::uint64_t step, std::uint64_t cell) const {
        const double here = value(step, cell);
        value(step + 1, cell) =
            here + conduction * (value(step, cell - 1) - 2 * here + value(step, cell + 1));
    }
};

bool advance(const Rod& rod, std::uint64_t step) {
    const std::uint32_t self = rod.network.self().value, nodes = rod.network.nodes();
    net::Pending pending;
    bool good = true;
    if (self > 0) good = rod.give(NodeId{self - 1}, step, 1, rod.cells + 1, pending);
    if (self + 1 < nodes) good = rod.give(NodeId{self + 1}, step, rod.cells, 0, pending) && good;
    for (std::uint64_t cell = 2; cell < rod.cells; ++cell) rod.compute(step, cell);
    good = rod.network.wait(pending) && good;
    rod.network.barrier();  // the neighbours' cells are here
    rod.compute(step, 1);
    if (rod.cells > 1) rod.compute(step, rod.cells);
    return good;
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t cells = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
    const std::uint64_t steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 500;
    if (cells == 0 || steps == 0) {
        std::fprintf(stderr, "usage: net_heat [cells, from 1] [steps, from 1]\n");
        return 64;
    }
    std::string why;
    const auto network = net::Network::open(&why);
    const auto memory = network == nullptr
                            ? std::nullopt
                            : network->allocate(2 * (cells + 2) * sizeof(double), &why);
    if (!memory || !network->connect(&why)) {
        std::fprintf(stderr, "%s\n", why.c_str());
        return 78;
    }
    // One half wave, whose shape stays and whose height shrinks by a known factor each step.
    const Rod rod{*network, *memory, cells};
    const double pi = std::acos(-1.0);
    const auto all = static_cast<double>(cells * network->nodes());
    const auto wave = [&](std::uint64_t cell) {
        return std::sin(pi * static_cast<double>(network->self().value * cells + cell) / (all + 1));
    };
    for (std::uint64_t cell = 1; cell <= cells; ++cell) rod.value(0, cell) = wave(cell);
    bool good = true;
    for (std::uint64_t step = 0; step < steps && good; ++step) good = advance(rod, step);

    const double height =
        std::pow(1 - 2 * conduction * (1 - std::cos(pi / (all + 1))), static_cast<double>(steps));
    double error = good ? 0 : 1;
    for (std::uint64_t cell = 1; cell <= cells; ++cell)
        error = std::max(error, std::abs(rod.value(steps, cell) - height * wave(cell)));
    error = network->all_reduce(error, [](double a, double b) { return std::max(a, b); });
    good = error < 1e-12 * static_cast<double>(steps + 10);
    if (network->self() == NodeId{0}) {
        std::printf("%lu cells on each of %u nodes, %lu steps, error %.1e: VERIFICATION %s\n",
                    cells, network->nodes(), steps, error, good ? "SUCCESSFUL" : "FAILED");
    }
    return good ? 0 : 1;
}
