// SPDX-License-Identifier: BSD-3-Clause
// Role: the race between going to bed and being woken, met head on some hundred thousand times.
#include "net/provider/shm/doorbell.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/clock.hpp"

namespace hiroba::net::shm {
namespace {

constexpr std::uint64_t lost_ns = 3'000'000'000;  // no wake-up takes so long

/// Two threads that start each round as close together as two cores can, one a little later.
struct Rounds {
    static constexpr std::uint64_t count = 200'000;
    alignas(64) std::atomic<std::uint64_t> arrived{0};
    alignas(64) std::atomic<std::uint64_t> stored{0};
    Bell bell;

    void start(std::uint64_t round, unsigned delay) {
        arrived.fetch_add(1);
        for (unsigned spins = 0; arrived.load() < 2 * round; ++spins) {
            if (spins > 2'000) sched_yield();
        }
        for (unsigned i = 0; i < delay; ++i) asm volatile("");
    }
};

TEST(Doorbell, wakes_or_warns_a_thread_that_goes_to_bed_while_the_store_comes) {
    Rounds rounds;
    std::thread waker{[&] {
        for (std::uint64_t round = 1; round <= Rounds::count; ++round) {
            rounds.start(round, round % 101 * 8);
            // With the line of `sleepers` at hand and that of `stored` away, a store that no fence
            // completes is still under way when ring() looks for sleepers.
            (void)rounds.bell.sleepers.load(std::memory_order_relaxed);
            rounds.stored.store(round, std::memory_order_release);
            ring(rounds.bell);
        }
    }};
    struct Waited {
        Rounds* rounds;
        std::uint64_t round;
    } waited{&rounds, 0};
    std::uint64_t lost = 0;
    for (waited.round = 1; waited.round <= Rounds::count; ++waited.round) {
        rounds.start(waited.round, waited.round % 97 * 8);
        const auto came = [](void* p) {
            const Waited& waited = *static_cast<Waited*>(p);
            return waited.rounds->stored.load(std::memory_order_acquire) >= waited.round;
        };
        const std::uint64_t start_ns = now_ns();
        while (!came(&waited)) sleep_at(rounds.bell, lost_ns, came, &waited);
        lost += now_ns() - start_ns >= lost_ns;
        if (lost > 3) break;  // proven; do not take all day
    }
    EXPECT_EQ(lost, 0u);
    rounds.arrived.store(2 * Rounds::count + 2);  // lets the waker run out
    waker.join();
}

TEST(Doorbell, makes_a_ring_without_sleepers_no_more_than_a_look) {
    Bell bell;
    ring(bell);
    EXPECT_EQ(bell.rings.load(), 0u);
}

TEST(Doorbell, lets_a_sleeper_go_when_its_time_is_over) {
    Bell bell;
    const std::uint64_t start_ns = now_ns();
    while (now_ns() - start_ns < 2'000'000) {
        sleep_at(
            bell, 2'000'000, [](void*) { return false; }, nullptr);
    }
    EXPECT_EQ(bell.sleepers.load(), 0u);
}

}  // namespace
}  // namespace hiroba::net::shm
