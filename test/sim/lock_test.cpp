// SPDX-License-Identifier: BSD-3-Clause
// Role: locks on simulated nodes whose threads are held up anywhere: a try gets a lock that no
// thread holds or waits for, whatever the runtime's own threads still do with it. LOCK_RUNS sets
// how many runs; LOCK_SEED replays one.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "base/test_parts/given_number.hpp"
#include "base/thread_context.hpp"
#include "dsm/thread_part.hpp"
#include "sim/dsm/cluster.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::uint32_t rounds = 10;

ClusterOptions options_of(std::uint64_t seed) {
    ClusterOptions options;
    options.nodes = static_cast<std::uint32_t>(seed % 8 == 7 ? 4 : 2 + seed % 8 / 5);
    options.threads_of_first = static_cast<std::uint32_t>(1 + seed / 8 % 2);
    options.scheduling.seed = seed;
    // A thread that is sent away comes back soon, or after many locks of others.
    options.scheduling.turn_max_ns = seed / 2 % 4 == 0 ? 1'000 : 300'000;
    options.scheduling.limit_ns = 10'000'000'000;
    options.wire.latency_ns = 1'500;
    options.wire.jitter_ns = seed / 4 % 2 == 0 ? 0 : 10'000;
    options.wire.slow_calls = 50;
    return options;
}

/// Counts threads at the end of a part; those that wait look again after a time of their own.
class Meeting {
public:
    Meeting(net::sim::Scheduler& scheduler, std::uint32_t threads)
        : scheduler_(scheduler), threads_(threads) {}
    void come() {
        const std::uint32_t all = (came_++ / threads_ + 1) * threads_;
        while (came_ < all) scheduler_.work(2'000);
    }

private:
    net::sim::Scheduler& scheduler_;
    std::uint32_t threads_, came_ = 0;
};

struct Locks {
    std::uint32_t threads;
    bool misses;
    std::uint64_t count = 0;
    std::string fault{};

    void fail(std::uint32_t thread, std::uint32_t round, const char* what) {
        if (fault.empty())
            fault = "thread " + std::to_string(thread) + " in round " + std::to_string(round) +
                    ": " + what;
    }
};

// Under the lock a count is taken, held up and stored: two threads in there would lose one.
void use(Locks& locks, ClusterNode& node, dsm::LockKey key, Random& random,
         net::sim::Scheduler& scheduler) {
    node.locks().lock(key);
    const std::uint64_t before = locks.count;
    const std::uint64_t held_ns = 1 + random.below(3'000);
    scheduler.work(held_ns);
    // As where what lies under the lock is brought here: the lock stays for longer.
    if (locks.misses && random.happens(50))
        dsm::thread_part(this_thread()).missed_ns += random.below(held_ns);
    locks.count = before + 1;
    node.locks().unlock(key);
    scheduler.work(1 + random.below(random.happens(20) ? 40'000 : 2'000));
}

std::string run(net::sim::FiberStacks& stacks, std::uint64_t seed) {
    Cluster cluster{stacks, options_of(seed)};
    Locks locks{.threads = cluster.threads(), .misses = seed / 3 % 2 == 0};
    Meeting meeting{cluster.scheduler(), cluster.threads()};
    const auto outcome = cluster.run([&](std::uint32_t thread, ClusterNode& node) {
        Random random{seed * 64 + thread};
        const dsm::LockKey key = cluster.map().early_arena().address;
        std::uint64_t used = 0;
        for (std::uint32_t round = 0; round < rounds; ++round) {
            for (std::uint64_t i = random.below(4); i > 0; --i, ++used)
                use(locks, node, key, random, cluster.scheduler());
            meeting.come();
            // One after the other.
            for (std::uint32_t turn = 0; turn < locks.threads; ++turn) {
                if ((turn + round) % locks.threads == thread) {
                    if (!node.locks().try_lock(key)) {
                        locks.fail(thread, round, "did not get a lock that nobody has");
                    } else {
                        node.locks().unlock(key);
                    }
                }
                meeting.come();
            }
        }
        locks.count -= used;
    });
    if (locks.fault.empty() && outcome != net::sim::Scheduler::Outcome::ended)
        return outcome_name(outcome);
    if (locks.fault.empty() && locks.count != 0) return "two threads had the lock at once";
    return locks.fault;
}

TEST(Locks, are_had_at_the_first_try_where_nobody_has_or_awaits_them) {
    net::sim::FiberStacks stacks;
    const std::uint64_t first = given_number("LOCK_SEED", 1), runs = given_number("LOCK_RUNS", 300);
    for (std::uint64_t seed = first; seed < first + runs; ++seed)
        ASSERT_EQ(run(stacks, seed), "") << "replay: LOCK_RUNS=1 LOCK_SEED=" << seed;
}

}  // namespace
}  // namespace hiroba::sim_test
