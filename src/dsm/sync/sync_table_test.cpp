// SPDX-License-Identifier: BSD-3-Clause
// Role: the synchronization objects of two nodes in one process, over memory that both see and a
// shared memory that only counts what it is told. Threads stand for those of either node.
#include "dsm/sync/sync_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/latch.hpp"
#include "dsm/test_parts/idle_memory.hpp"
#include "dsm/test_parts/table_nodes.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::uint32_t nodes = 2;

/// Its time is the number of its releases and of those it has learned of.
class CountingMemory final : public test::IdleMemory {
public:
    CountingMemory(const AddressMap& map, std::uint32_t) : IdleMemory(map) {}
    std::atomic<std::uint64_t> releases{0}, acquires{0}, knows{0};

    void release(Others) noexcept override {
        ++releases;
        ++knows;
    }
    void acquire(Others) noexcept override { ++acquires; }
    std::size_t news_for_anyone(MutableBytes out) noexcept override {
        const std::uint64_t time = knows;
        std::memcpy(out.data(), &time, sizeof time);
        return sizeof time;
    }
    std::size_t news_bytes_max() const noexcept override { return sizeof(std::uint64_t); }
    void learn(NodeId, Bytes news) noexcept override {
        std::uint64_t time = 0;
        std::memcpy(&time, news.data(), sizeof time);
        std::uint64_t known = knows;
        while (known < time && !knows.compare_exchange_weak(known, time)) {
        }
    }
};

class Sync : public testing::Test, protected test::TableNodes<SyncTable, CountingMemory> {
protected:
    Sync() : TableNodes(nodes) {}
    static Deadline in_ms(long ms) {
        Deadline deadline{CLOCK_MONOTONIC, {}};
        clock_gettime(CLOCK_MONOTONIC, &deadline.time);
        deadline.time.tv_nsec += ms * 1'000'000;
        deadline.time.tv_sec += deadline.time.tv_nsec / 1'000'000'000;
        deadline.time.tv_nsec %= 1'000'000'000;
        return deadline;
    }
};

constexpr SyncKey key = 0x1000'0000'1240;
constexpr MutexType normal = MutexType::normal;
constexpr Waiting no_waiting{false, nullptr};

TEST_F(Sync, a_mutex_of_one_node_costs_no_release_until_another_wants_it) {
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(at(0).lock_mutex(key, normal, {}), SyncOutcome::done);
        EXPECT_EQ(at(0).unlock_mutex(key, normal), SyncOutcome::done);
    }
    EXPECT_EQ(memory(0).releases, 0u);

    EXPECT_EQ(at(1).lock_mutex(key, normal, {}), SyncOutcome::done);

    EXPECT_EQ(memory(0).releases, 1u);
    EXPECT_EQ(memory(1).acquires, 1u);
    EXPECT_EQ(memory(1).knows, 1u);
    EXPECT_EQ(at(1).unlock_mutex(key, normal), SyncOutcome::done);
}

TEST_F(Sync, a_semaphore_of_one_node_costs_no_release_until_another_wants_it) {
    at(0).make_semaphore(key, 1);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(at(0).take_semaphore(key, 1, {}), SyncOutcome::done);
        EXPECT_EQ(at(0).post_semaphore(key, 1), SyncOutcome::done);
    }
    EXPECT_EQ(memory(0).releases, 0u);

    EXPECT_EQ(at(1).take_semaphore(key, 1, no_waiting), SyncOutcome::done);

    EXPECT_EQ(memory(0).releases, 1u);
    EXPECT_EQ(memory(1).acquires, 1u);
    EXPECT_EQ(memory(1).knows, 1u);
}

TEST_F(Sync, a_read_write_lock_of_one_node_costs_no_release_until_another_wants_it) {
    for (const LockMode mode : {LockMode::exclusive, LockMode::shared}) {
        const SyncKey lock = key + 64 * static_cast<SyncKey>(mode);
        const std::uint64_t before = memory(0).releases;
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(at(0).lock_rwlock(lock, mode, false, {}), SyncOutcome::done);
            EXPECT_EQ(at(0).unlock_rwlock(lock), SyncOutcome::done);
        }
        EXPECT_EQ(memory(0).releases, before);

        EXPECT_EQ(at(1).lock_rwlock(lock, LockMode::shared, false, {}), SyncOutcome::done);

        EXPECT_EQ(memory(0).releases, before + 1);
        EXPECT_EQ(memory(1).knows, memory(0).knows);
        EXPECT_EQ(at(1).unlock_rwlock(lock), SyncOutcome::done);
        EXPECT_EQ(at(1).unlock_rwlock(lock), SyncOutcome::not_owner);
    }
}

// Its payment would replace what the others have published meanwhile, which a third node needs.
TEST_F(Sync, a_reader_owes_nothing_where_it_has_not_seen_what_other_readers_published) {
    constexpr int eager_releases = 16;
    const auto read = [&](std::uint32_t rank) {
        EXPECT_EQ(at(rank).lock_rwlock(key, LockMode::shared, false, {}), SyncOutcome::done);
    };
    read(1);
    EXPECT_EQ(at(1).unlock_rwlock(key), SyncOutcome::done);
    read(0);
    const std::uint64_t before = memory(1).releases;
    for (int i = 0; i < eager_releases; ++i) {
        read(1);
        EXPECT_EQ(at(1).unlock_rwlock(key), SyncOutcome::done);
    }
    EXPECT_EQ(memory(1).releases, before + eager_releases);
    EXPECT_EQ(memory(0).releases, 0u);

    EXPECT_EQ(at(0).unlock_rwlock(key), SyncOutcome::done);

    EXPECT_EQ(memory(0).releases, 1u);
    EXPECT_EQ(memory(0).knows, memory(1).knows);  // has learned what the other published
}

// Readers of both nodes at once: each must be followed by a writer that knows what they released.
TEST_F(Sync, whoever_gets_a_semaphore_or_a_read_write_lock_knows_all_releases_of_who_had_it) {
    at(0).make_semaphore(key + 64, 1);
    std::uint64_t knew = 0, knew_there = 0;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) {
                at(t % 2).lock_rwlock(key, LockMode::exclusive, false, {});
                if (memory(t % 2).knows < knew) ++wrong;
                knew = memory(t % 2).knows;
                at(t % 2).unlock_rwlock(key);
                at(t % 2).lock_rwlock(key, LockMode::shared, false, {});
                if (memory(t % 2).knows < knew) ++wrong;
                at(t % 2).unlock_rwlock(key);
                at(t % 2).take_semaphore(key + 64, 1, {});
                if (memory(t % 2).knows < knew_there) ++wrong;
                knew_there = memory(t % 2).knows;
                at(t % 2).post_semaphore(key + 64, 1);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(Sync, whoever_gets_a_mutex_knows_all_releases_of_who_had_it) {
    std::uint64_t knew = 0;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) {
                at(t % 2).lock_mutex(key, normal, {});
                if (memory(t % 2).knows < knew) ++wrong;
                knew = memory(t % 2).knows;
                at(t % 2).unlock_mutex(key, normal);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_FALSE(at(0).is_mutex_held(key));
}

TEST_F(Sync, a_mutex_tells_its_types_apart) {
    EXPECT_EQ(at(0).lock_mutex(key, MutexType::recursive, {}), SyncOutcome::done);
    EXPECT_EQ(at(0).lock_mutex(key, MutexType::recursive, {}), SyncOutcome::done);
    EXPECT_EQ(at(1).lock_mutex(key, MutexType::recursive, no_waiting), SyncOutcome::busy);
    EXPECT_EQ(at(1).unlock_mutex(key, MutexType::recursive), SyncOutcome::not_owner);
    EXPECT_EQ(at(0).unlock_mutex(key, MutexType::recursive), SyncOutcome::done);
    EXPECT_TRUE(at(0).is_mutex_mine(key));
    EXPECT_EQ(at(0).unlock_mutex(key, MutexType::recursive), SyncOutcome::done);
    EXPECT_FALSE(at(1).is_mutex_held(key));

    EXPECT_EQ(at(1).lock_mutex(key, MutexType::errorcheck, {}), SyncOutcome::done);
    EXPECT_EQ(at(1).lock_mutex(key, MutexType::errorcheck, {}), SyncOutcome::deadlock);
    EXPECT_EQ(at(1).unlock_mutex(key, MutexType::errorcheck), SyncOutcome::done);
    EXPECT_EQ(at(1).unlock_mutex(key, MutexType::errorcheck), SyncOutcome::not_owner);
}

TEST_F(Sync, who_gives_up_waiting_is_not_handed_the_mutex) {
    at(0).lock_mutex(key, normal, {});
    std::thread late([&] {
        const Deadline soon = in_ms(5);
        EXPECT_EQ(at(1).lock_mutex(key, normal, {true, &soon}), SyncOutcome::timed_out);
    });
    late.join();
    at(0).unlock_mutex(key, normal);
    EXPECT_FALSE(at(0).is_mutex_held(key));
    EXPECT_EQ(at(1).lock_mutex(key, normal, no_waiting), SyncOutcome::done);
}

// Either the wake-up or the end of patience, never both and never neither.
TEST_F(Sync, every_signal_wakes_one_who_has_not_given_up) {
    constexpr int rounds = 400;
    int woken = 0;
    std::atomic<bool> over{false};
    std::vector<std::thread> waiters;
    std::mutex counting;
    for (std::uint32_t t = 0; t < 3; ++t) {
        waiters.emplace_back([&, t] {
            for (int i = 0; i < rounds; ++i) {
                const SyncWaiter waiter = at(t % 2).join_condition(key);
                const Deadline soon = in_ms(i % 3 == 0 ? 0 : 1);
                const bool patient = i % 7 == 0;
                const auto outcome =
                    at(t % 2).await_condition(key, waiter, patient ? nullptr : &soon);
                EXPECT_TRUE(!patient || outcome == SyncOutcome::done);
                const std::scoped_lock guard{counting};
                woken += outcome == SyncOutcome::done;
            }
        });
    }
    std::thread signaller([&] {
        while (!over) {
            at(1).signal_condition(key, false);
            sched_yield();
        }
    });
    for (auto& waiter : waiters) waiter.join();
    over = true;
    signaller.join();
    EXPECT_GE(woken, 3 * rounds / 7);
}

TEST_F(Sync, a_writer_that_gives_up_lets_readers_in) {
    constexpr bool writers_first = true;
    EXPECT_EQ(at(0).lock_rwlock(key, LockMode::shared, writers_first, {}), SyncOutcome::done);
    std::thread writer([&] {
        const Deadline soon = in_ms(20);
        EXPECT_EQ(at(1).lock_rwlock(key, LockMode::exclusive, writers_first, {true, &soon}),
                  SyncOutcome::timed_out);
    });
    std::thread reader([&] {
        // Before, behind or after the writer: it gets in while the first reader stays.
        EXPECT_EQ(at(1).lock_rwlock(key, LockMode::shared, writers_first, {}), SyncOutcome::done);
        at(1).unlock_rwlock(key);
    });
    reader.join();
    writer.join();
    EXPECT_EQ(at(0).unlock_rwlock(key), SyncOutcome::done);
    EXPECT_EQ(at(1).lock_rwlock(key, LockMode::exclusive, writers_first, no_waiting),
              SyncOutcome::done);
}

TEST_F(Sync, all_leave_a_barrier_knowing_what_all_brought) {
    constexpr std::uint32_t threads = 4;
    std::atomic<int> last{0};
    std::atomic<int> wrong{0};
    std::array<std::atomic<int>, threads> round{};
    std::vector<std::thread> team;
    for (std::uint32_t t = 0; t < threads; ++t) {
        team.emplace_back([&, t] {
            for (int i = 1; i <= 100; ++i) {
                round[t] = i;
                const SyncOutcome outcome = at(t % 2).pass_barrier(key, threads);
                if (outcome == SyncOutcome::last) ++last;
                for (const auto& each : round) wrong += each < i;
            }
        });
    }
    for (auto& thread : team) thread.join();
    EXPECT_EQ(last, 100);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(memory(0).releases + memory(1).releases, 400u);
}

TEST_F(Sync, a_semaphore_keeps_its_value_until_destroyed) {
    EXPECT_EQ(at(1).semaphore_value(key, 3), 3u);  // made before the table could be told
    EXPECT_EQ(at(0).take_semaphore(key, 3, no_waiting), SyncOutcome::done);
    EXPECT_EQ(at(1).post_semaphore(key, 3), SyncOutcome::done);
    EXPECT_EQ(at(1).post_semaphore(key, 3), SyncOutcome::done);
    EXPECT_EQ(at(0).semaphore_value(key, 3), 4u);
    at(0).make_semaphore(key, 0);
    EXPECT_EQ(at(1).take_semaphore(key, 0, no_waiting), SyncOutcome::busy);
    at(0).make_semaphore(key, 0x7FFF'FFFF);
    EXPECT_EQ(at(1).post_semaphore(key, 0), SyncOutcome::overflow);
    at(1).destroy_semaphore(key);
    EXPECT_EQ(at(0).semaphore_value(key, 7), 7u);
}

TEST_F(Sync, a_wake_of_a_futex_reaches_those_with_one_of_its_bits_in_their_order) {
    const SyncWaiter first = at(0).join_futex(key, 1);
    const SyncWaiter second = at(1).join_futex(key, 2);
    const SyncWaiter third = at(1).join_futex(key, 3);
    EXPECT_EQ(at(0).wake_futex(key, 4, 10), 0u);
    EXPECT_EQ(at(0).wake_futex(key, 2, 1), 1u);
    EXPECT_EQ(at(1).await_futex(second, in_ms(1000)), SyncOutcome::done);
    EXPECT_EQ(at(1).await_futex(third, in_ms(1)), SyncOutcome::timed_out);
    EXPECT_TRUE(at(1).leave_futex(key, second));

    EXPECT_FALSE(at(0).leave_futex(key, first));  // not woken; the last in the list stays
    EXPECT_EQ(at(0).wake_futex(key, ~0u, 10), 1u);
    EXPECT_EQ(at(0).wake_futex(key, ~0u, 10), 0u);
    EXPECT_TRUE(at(1).leave_futex(key, third));  // woken before it gave up
}

// As std::future: a waiter looks at the word behind join_futex(), who wakes changes it before.
TEST_F(Sync, no_wake_of_a_futex_is_lost) {
    constexpr int rounds = 2000;
    std::atomic<int> word{0};
    std::thread waiter([&] {
        for (int i = 0; i < rounds; ++i) {
            while (word < 2 * i + 1) {
                const SyncWaiter place = at(1).join_futex(key, ~0u);
                if (word < 2 * i + 1) {
                    EXPECT_EQ(at(1).await_futex(place, in_ms(20'000)), SyncOutcome::done);
                }
                at(1).leave_futex(key, place);
            }
            word = 2 * i + 2;
            at(1).wake_futex(key + 64, ~0u, 1);
        }
    });
    for (int i = 0; i < rounds; ++i) {
        word = 2 * i + 1;
        at(0).wake_futex(key, ~0u, 1);
        while (word < 2 * i + 2) {
            const SyncWaiter place = at(0).join_futex(key + 64, ~0u);
            if (word < 2 * i + 2) {
                EXPECT_EQ(at(0).await_futex(place, in_ms(20'000)), SyncOutcome::done);
            }
            at(0).leave_futex(key + 64, place);
        }
    }
    waiter.join();
}

TEST_F(Sync, once_is_one_thread_at_a_time) {
    int inside = 0;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 200; ++i) {
                at(t % 2).begin_once(key);
                if (++inside != 1) ++wrong;
                --inside;
                at(t % 2).end_once(key);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(Sync, once_of_one_node_costs_no_release_until_another_looks) {
    for (SyncKey each = key; each < key + 1'000 * 8; each += 8) {
        at(0).begin_once(each);
        at(0).end_once(each);
    }
    EXPECT_EQ(memory(0).releases, 0u);
    at(1).see_once(key);
    EXPECT_EQ(memory(0).releases, 1u);
    EXPECT_EQ(memory(1).knows, 1u);
    at(1).begin_once(key + 8);
    at(1).forgo_once(key + 8);
    EXPECT_LE(memory(0).releases, 2u);
    EXPECT_EQ(memory(1).releases, 0u);
}

// More than there are cells: an idle object needs none.
TEST_F(Sync, a_million_mutexes_may_come_and_go) {
    for (SyncKey each = key; each < key + 40 * 1'000'000ull; each += 40) {
        ASSERT_EQ(at(0).lock_mutex(each, normal, no_waiting), SyncOutcome::done);
        ASSERT_EQ(at(0).unlock_mutex(each, normal), SyncOutcome::done);
    }
}

}  // namespace
}  // namespace hiroba::dsm
