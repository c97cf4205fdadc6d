// SPDX-License-Identifier: BSD-3-Clause
// Role: what the programs of this folder share: a scheduler on a network, opened, or the reason why
// not; an end with one line when an answer is wrong.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "hiroba/net.hpp"
#include "hiroba/tasks.hpp"

namespace tasks_test {

namespace net = hiroba::net;
namespace tasks = hiroba::tasks;
using hiroba::NodeId;

/// Ends the process, and with it the job.
[[noreturn]] inline void wrong(const std::string& what) {
    std::fprintf(stderr, "WRONG: %s\n", what.c_str());
    _exit(9);
}
inline void require(bool good, const std::string& what) {
    if (!good) wrong(what);
}

/// A network with a scheduler on it.
struct Job {
    std::unique_ptr<net::Network> network;
    std::unique_ptr<tasks::Scheduler> scheduler;

    explicit Job(const tasks::Options& options) : Job(nullptr, options, options) {}
    /// @param others  of the nodes but the first
    Job(const tasks::Options& first, const tasks::Options& others) : Job(nullptr, first, others) {}
    /// @param opened  not connected
    Job(std::unique_ptr<net::Network> opened, const tasks::Options& options)
        : Job(std::move(opened), options, options) {}

private:
    Job(std::unique_ptr<net::Network> opened, const tasks::Options& first,
        const tasks::Options& others)
        : network(std::move(opened)) {
        std::string why;
        if (network == nullptr) network = net::Network::open(&why);
        const tasks::Options& options = network == nullptr || is_first() ? first : others;
        if (network != nullptr) scheduler = tasks::Scheduler::open(network.get(), options, &why);
        if (scheduler == nullptr || !network->connect(&why)) {
            std::fprintf(stderr, "%s\n", why.c_str());
            std::exit(78);
        }
    }

public:
    bool is_first() const { return network->self().value == 0; }
};

}  // namespace tasks_test
