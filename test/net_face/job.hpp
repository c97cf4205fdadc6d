// SPDX-License-Identifier: BSD-3-Clause
// Role: what the programs of this folder share: a node of the job by the public headers alone, and
// an end with one line when something is wrong or nothing goes on.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "hiroba/kick.hpp"
#include "hiroba/net.hpp"

namespace net_face {

namespace kick = hiroba::kick;
namespace net = hiroba::net;
using hiroba::NodeId;

inline std::atomic<std::uint32_t> rank{0};

/// Ends the process, and with it the job.
[[noreturn]] inline void wrong(const std::string& what) {
    std::fprintf(stderr, "WRONG on node %u: %s\n", rank.load(), what.c_str());
    _exit(9);
}

template <class Say>
void require(bool good, Say&& say) {
    if (!good) [[unlikely]]
        wrong(say());
}
inline void require(bool good, const char* what) {
    if (!good) [[unlikely]]
        wrong(what);
}

inline std::atomic<std::uint64_t> steps{0};

/// Called now and then by what goes on.
inline void step() { steps.fetch_add(1, std::memory_order_relaxed); }

/// Ends the process when no step was made for so long that none will be: other work on the machine
/// does not make a node wait for this long.
inline void watch_steps() {
    std::thread([] {
        constexpr int seconds_max = 30;
        std::uint64_t seen = 0;
        for (int since = 0; since < seconds_max; ++since) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
            const std::uint64_t now = steps.load(std::memory_order_relaxed);
            if (now != seen) since = 0;
            seen = now;
        }
        wrong("it hangs after step " + std::to_string(seen));
    }).detach();
}

/// Opens the network. A failure ends the process.
inline std::unique_ptr<net::Network> open_network() {
    std::string why;
    auto network = net::Network::open(&why);
    if (network == nullptr) wrong("open: " + why);
    rank = network->self().value;
    return network;
}

/// Makes a request until it is accepted.
template <class Attempt>
void accepted(net::Network& network, Attempt&& attempt) {
    if (network.insist(attempt) != net::Submission::accepted) wrong("a right request is refused");
}

}  // namespace net_face
