// SPDX-License-Identifier: BSD-3-Clause
// Role: how long operations of all nodes take.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t iterations_max = 1 << 16;

template <class Operation>
double timed(std::uint64_t iterations, Operation&& operation) {
    const std::uint64_t begun_ns = now_ns();
    for (std::uint64_t i = 0; i < iterations; ++i) operation(i);
    return static_cast<double>(now_ns() - begun_ns) / static_cast<double>(iterations);
}

}  // namespace

Measured measure_barrier(Rig& rig) {
    const auto raw = make_raw_exchange(rig, 0);
    std::byte nothing{};
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return timed(n, [&](std::uint64_t) { raw->exchange(&nothing, &nothing); });
        },
        [&](std::uint64_t n) {
            return timed(n, [&](std::uint64_t) { rig.collectives().barrier(); });
        },
        8, iterations_max);
    // A node that comes out sees what every node did before going in.
    std::uint64_t mark_of = rig.self() + 1;
    const NodeId next{(rig.self() + 1) % rig.plan().nodes};
    std::memcpy(rig.source_bytes(), &mark_of, sizeof mark_of);
    std::atomic<bool> done{false};
    insist(rig, [&] {
        return rig.async().try_write({next,
                                      {rig.source(), 0},
                                      {rig.landing(), 1 << 20},
                                      8,
                                      {[](void* data, net::Outcome) noexcept {
                                           static_cast<std::atomic<bool>*>(data)->store(
                                               true, std::memory_order_release);
                                       },
                                       &done}});
    });
    rig.async().wait_until([&] { return done.load(std::memory_order_acquire); });
    rig.collectives().barrier();
    std::memcpy(&mark_of, rig.landing_bytes() + (1 << 20), sizeof mark_of);
    measured.verified = mark_of == (rig.self() + rig.plan().nodes - 1) % rig.plan().nodes + 1;
    return measured;
}

Measured measure_all_reduce(Rig& rig) {
    const std::size_t count = rig.bytes() / 8;
    const std::uint64_t nodes = rig.plan().nodes;
    const auto raw = make_raw_exchange(rig, rig.bytes());
    std::vector<std::uint64_t> mine(count), all(count * nodes), sums(count);
    std::uint64_t wrong = 0;
    const auto check = [&](std::uint64_t i) {
        // The ranks add up to nodes * (nodes - 1) / 2, each with its own number of the round.
        wrong += sums[0] != nodes * i + nodes * (nodes - 1) / 2 || sums[count - 1] != sums[0];
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return timed(n, [&](std::uint64_t i) {
                std::fill(mine.begin(), mine.end(), i + rig.self());
                const bool whole = raw->exchange(reinterpret_cast<const std::byte*>(mine.data()),
                                                 reinterpret_cast<std::byte*>(all.data()));
                if (!whole) return;
                std::fill(sums.begin(), sums.end(), 0);
                for (std::size_t at = 0; at < all.size(); ++at) sums[at % count] += all[at];
                check(i);
            });
        },
        [&](std::uint64_t n) {
            return timed(n, [&](std::uint64_t i) {
                std::fill(sums.begin(), sums.end(), i + rig.self());
                rig.collectives().all_reduce(
                    std::span(sums), [](std::uint64_t a, std::uint64_t b) { return a + b; });
                check(i);
            });
        },
        8, iterations_max);
    measured.verified = wrong == 0;
    return measured;
}

Measured measure_all_gather(Rig& rig) {
    const auto raw = make_raw_exchange(rig, rig.bytes());
    std::vector<std::byte> mine(rig.bytes()), all(rig.bytes() * rig.plan().nodes);
    std::uint64_t wrong = 0;
    const auto round = [&](std::uint64_t i, auto&& gather) {
        mark(mine.data(), mine.size(), i * 64 + rig.self());
        if (!gather()) return;
        for (std::uint64_t rank = 0; rank < rig.plan().nodes; ++rank) {
            wrong += !is_marked(all.data() + rank * mine.size(), mine.size(), i * 64 + rank);
        }
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return timed(n, [&](std::uint64_t i) {
                round(i, [&] { return raw->exchange(mine.data(), all.data()); });
            });
        },
        [&](std::uint64_t n) {
            return timed(n, [&](std::uint64_t i) {
                round(i, [&] {
                    rig.collectives().all_gather(mine, all);
                    return true;
                });
            });
        },
        8, iterations_max);
    measured.verified = wrong == 0;
    return measured;
}

}  // namespace hiroba::tools::perf_parts
