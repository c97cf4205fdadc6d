// SPDX-License-Identifier: BSD-3-Clause
// Role: mutexes, semaphores and read-write locks of the program on simulated nodes, over the real
// shared memory: who has one sees all that was written under it, whoever owed the release.
// OBJECT_RUNS sets how many runs; OBJECT_SEED replays one.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "base/test_parts/given_number.hpp"
#include "sim/dsm/cluster.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::uint32_t objects = 4, words = 3, uses = 24, threads_max = 8;
constexpr dsm::MutexType normal = dsm::MutexType::normal;

ClusterOptions options_of(std::uint64_t seed) {
    ClusterOptions options;
    options.nodes = static_cast<std::uint32_t>(2 + seed % 3);
    options.threads_of_first = static_cast<std::uint32_t>(1 + seed / 3 % 2);
    options.with_objects = true;
    options.scheduling.seed = seed;
    options.scheduling.turn_max_ns = seed / 2 % 4 == 0 ? 1'000 : 100'000;
    options.scheduling.limit_ns = 10'000'000'000;
    options.wire.latency_ns = 1'500;
    options.wire.jitter_ns = seed / 4 % 2 == 0 ? 0 : 10'000;
    return options;
}

/// What lies under one object: the words in global memory, and what they must be.
struct Guarded {
    std::array<std::uint64_t, words> expected{};
    std::array<std::uint64_t, threads_max> told{};  ///< by each thread, also one that only reads
};

class Uses {
public:
    explicit Uses(Cluster& cluster) : cluster_(cluster) {}

    void run(std::uint32_t thread, ClusterNode& node, std::uint64_t seed) {
        Random random{seed * 64 + thread};
        // Mostly of one object, which then stays here for a while.
        std::uint32_t object = thread % objects;
        for (std::uint32_t use = 0; use < uses; ++use) {
            if (random.happens(25)) object = static_cast<std::uint32_t>(random.below(objects));
            use_one(node, thread, object, random.happens(40));
            cluster_.scheduler().work(1 + random.below(random.happens(20) ? 30'000 : 1'000));
        }
    }
    const std::string& fault() const noexcept { return fault_; }

private:
    /// Each in a block of its own or beside others: all words of one number share a page.
    std::uintptr_t word(std::uint32_t object, std::uint32_t i) const noexcept {
        return cluster_.map().heap_arena(NodeId{0}).address + i * page_bytes + object * 64;
    }
    dsm::SyncKey key(std::uint32_t object) const noexcept { return word(object, 0) + 32; }

    void use_one(ClusterNode& node, std::uint32_t thread, std::uint32_t object, bool reads) {
        dsm::SyncTable& table = node.objects();
        switch (object % 4) {
            case 0:
                table.lock_mutex(key(object), normal, {});
                touch(node, thread, object, reads);
                table.unlock_mutex(key(object), normal);
                return;
            case 1:
                table.take_semaphore(key(object), 1, {});
                touch(node, thread, object, reads);
                table.post_semaphore(key(object), 1);
                return;
            default:
                table.lock_rwlock(key(object),
                                  reads ? dsm::LockMode::shared : dsm::LockMode::exclusive, false,
                                  {});
                touch(node, thread, object, reads);
                table.unlock_rwlock(key(object));
        }
    }
    void touch(ClusterNode& node, std::uint32_t thread, std::uint32_t object, bool reads) {
        Guarded& guarded = guarded_[object];
        for (std::uint32_t i = 0; i < words; ++i) {
            expect(node, word(object, i), guarded.expected[i]);
            if (reads) continue;
            cluster_.scheduler().work(500);
            node.store(word(object, i), 8, ++guarded.expected[i]);
        }
        // A reader may have written elsewhere: who comes alone behind it sees that.
        for (std::uint32_t other = 0; !reads && other < cluster_.threads(); ++other)
            expect(node, told(object, other), guarded.told[other]);
        cluster_.scheduler().work(200);
        node.store(told(object, thread), 8, ++guarded.told[thread]);
    }
    void expect(ClusterNode& node, std::uintptr_t address, std::uint64_t wanted) {
        const std::uint64_t found = node.load(address, 8);
        if (found == wanted || !fault_.empty()) return;
        fault_ = "node " + std::to_string(node.self().value) + " found " + std::to_string(found) +
                 " for " + std::to_string(wanted) + " in page " +
                 std::to_string((address - word(0, 0)) / page_bytes) + " at " +
                 std::to_string(address % page_bytes);
    }
    std::uintptr_t told(std::uint32_t object, std::uint32_t thread) const noexcept {
        return word(0, words) + object * 64 + thread * 8;
    }

    Cluster& cluster_;
    std::array<Guarded, objects> guarded_{};
    std::string fault_;
};

std::string run(net::sim::FiberStacks& stacks, std::uint64_t seed) {
    Cluster cluster{stacks, options_of(seed)};
    Uses all{cluster};
    const auto outcome =
        cluster.run([&](std::uint32_t thread, ClusterNode& node) { all.run(thread, node, seed); });
    if (all.fault().empty() && outcome != net::sim::Scheduler::Outcome::ended)
        return outcome_name(outcome);
    return all.fault();
}

TEST(Objects, show_who_has_them_all_that_was_written_under_them) {
    net::sim::FiberStacks stacks;
    const std::uint64_t first = given_number("OBJECT_SEED", 1),
                        runs = given_number("OBJECT_RUNS", 200);
    for (std::uint64_t seed = first; seed < first + runs; ++seed)
        ASSERT_EQ(run(stacks, seed), "") << "replay: OBJECT_RUNS=1 OBJECT_SEED=" << seed;
}

}  // namespace
}  // namespace hiroba::sim_test
