// SPDX-License-Identifier: BSD-3-Clause
// Role: the locks of three nodes in one process, over memory that all see and a shared memory that
// only counts what it is told. Threads stand for those of any node.
#include "dsm/sync/lock_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/latch.hpp"
#include "dsm/sync/lock_keeping.hpp"
#include "dsm/sync/sync_table.hpp"
#include "dsm/test_parts/idle_memory.hpp"
#include "dsm/test_parts/table_nodes.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::uint32_t nodes = 3;

/// A value each node writes, and what it knows of the others': news tell of all.
class NodeValues final : public test::IdleMemory {
public:
    NodeValues(const AddressMap& map, std::uint32_t self) : IdleMemory(map), self_(self) {}
    std::atomic<std::uint64_t> releases{0}, acquires{0};

    void write(std::uint64_t value) { written_ = value; }
    std::uint64_t read(std::uint32_t node) { return node == self_ ? written_.load() : seen_[node]; }

    void release(Others) noexcept override {
        ++releases;
        const std::scoped_lock guard{latch_};
        seen_[self_] = written_;
    }
    void acquire(Others) noexcept override { ++acquires; }
    void flush() noexcept override {
        static std::mutex mutex;
        static std::array<std::uint64_t, nodes> flushed{};
        const std::scoped_lock guard{mutex};
        release(Others::running);
        const std::scoped_lock also{latch_};
        for (std::uint32_t node = 0; node < nodes; ++node)
            seen_[node] = flushed[node] = std::max<std::uint64_t>(seen_[node], flushed[node]);
    }
    std::size_t news_for_anyone(MutableBytes out) noexcept override {
        const std::scoped_lock guard{latch_};
        std::memcpy(out.data(), seen_.data(), sizeof seen_);
        return sizeof seen_;
    }
    std::size_t news_bytes_max() const noexcept override { return sizeof seen_; }
    void learn(NodeId, Bytes news) noexcept override {
        std::array<std::uint64_t, nodes> told{};
        std::memcpy(told.data(), news.data(), sizeof told);
        const std::scoped_lock guard{latch_};
        for (std::uint32_t node = 0; node < nodes; ++node)
            seen_[node] = std::max(seen_[node], told[node]);
    }

private:
    std::uint32_t self_;
    Latch latch_;
    std::atomic<std::uint64_t> written_{0};
    std::array<std::uint64_t, nodes> seen_{};  ///< values only grow
};

class Locks : public testing::Test, protected test::TableNodes<LockTable, NodeValues> {
protected:
    Locks() : TableNodes(nodes) {}
    void use(std::uint32_t rank, LockKey key) {
        at(rank).lock(key);
        at(rank).unlock(key);
    }
};

/// A table of locks that has objects for what it has no place for.
class LocksAndObjects {
public:
    static Result<std::unique_ptr<LocksAndObjects>> create(net::Endpoint& endpoint,
                                                           SharedMemory& memory, DebtPayer& payer) {
        auto locks = LockTable::create(endpoint, memory, payer);
        if (!locks) return locks.error();
        auto objects = SyncTable::create(endpoint, memory, payer);
        if (!objects) return objects.error();
        (*locks)->overflow_to(**objects);
        return std::make_unique<LocksAndObjects>(std::move(*locks), std::move(*objects));
    }
    LocksAndObjects(std::unique_ptr<LockTable> locks, std::unique_ptr<SyncTable> objects)
        : locks_(std::move(locks)), objects_(std::move(objects)) {}
    void attach() {
        locks_->attach();
        objects_->attach();
    }
    LockTable& locks() { return *locks_; }

private:
    std::unique_ptr<LockTable> locks_;
    std::unique_ptr<SyncTable> objects_;
};

class ManyLocks : public testing::Test, protected test::TableNodes<LocksAndObjects, NodeValues> {
protected:
    ManyLocks() : TableNodes(nodes) {}
};

constexpr LockKey key = 0x1000'0000'1240;

// More than the table has places for, and each is the same lock on all nodes.
TEST_F(ManyLocks, are_all_locks) {
    constexpr LockKey count = 200'000;
    const auto at = [&](LockKey i) { return i < 100 ? i : key + 8 * i; };
    for (LockKey i = 0; i < count; ++i) {
        LockTable& mine = this->at(i % nodes).locks();
        mine.lock(at(i));
        if (i % 7 == 0) {
            EXPECT_FALSE(mine.try_lock(at(i)));
        }
    }
    const auto held = [&](LockKey i) { return !this->at((i + 1) % nodes).locks().try_lock(at(i)); };
    for (LockKey i = 0; i < count; i += 501) EXPECT_TRUE(held(i)) << i;
    memory(0).write(5);
    for (LockKey i = 0; i < count; ++i) this->at(i % nodes).locks().unlock(at(i));
    for (LockKey i = 0; i < count; i += 501) {
        LockTable& other = this->at((i + 1) % nodes).locks();
        ASSERT_TRUE(other.try_lock(at(i))) << i;
        if (i % nodes == 0) {
            EXPECT_EQ(memory(1).read(0), 5u);
        }
        other.unlock(at(i));
    }
}

TEST_F(ManyLocks, that_nobody_holds_are_not_unlocked) {
    LockTable& locks = at(0).locks();
    for (LockKey i = 0; i < 200'000; ++i) {
        locks.lock(key + 8 * i);
        locks.unlock(key + 8 * i);
    }
    EXPECT_EXIT(locks.unlock(key + 8 * 199'999), testing::ExitedWithCode(78), "which nobody holds");
}

TEST_F(Locks, of_one_node_cost_no_release_until_another_wants_them) {
    for (int i = 0; i < 100; ++i) use(0, key);
    EXPECT_EQ(memory(0).releases, 0u);
    memory(0).write(7);

    at(1).lock(key);

    EXPECT_EQ(memory(0).releases, 1u);
    EXPECT_EQ(memory(1).acquires, 1u);
    EXPECT_EQ(memory(1).read(0), 7u);
    at(1).unlock(key);
}

// The node's only thread knows that no thread writes while it unlocks. The DebtPayer, which may
// release in its place, does not know that.
TEST_F(Locks, leave_by_the_releaser_of_their_holder_alone) {
    struct Counted {
        NodeValues* memory;
        std::uint64_t releases;
    } by_holder{&memory(0), 0};
    at(0).release_by({[](void* context) noexcept {
                          auto& counted = *static_cast<Counted*>(context);
                          ++counted.releases;
                          counted.memory->release(Others::stopped);
                      },
                      &by_holder});
    use(0, key);

    use(1, key);

    EXPECT_EQ(memory(0).releases, 1u) << "the lock lay open: the payer's";
    EXPECT_EQ(by_holder.releases, 0u);
    use(0, key);
    EXPECT_EQ(memory(0).releases, 2u) << "as long a stay as before: published at the unlock";
    EXPECT_EQ(by_holder.releases, 1u);
}

// After 100 holds each time, node 0 tells at the hundredth what it has written, and node 1 takes
// the lock without node 0's help.
TEST_F(Locks, that_leave_as_before_lie_published) {
    for (int stay = 0; stay < 3; ++stay) {
        for (int i = 0; i < 100; ++i) use(0, key);
        use(1, key);
    }
    for (int i = 0; i < 99; ++i) use(0, key);
    const std::uint64_t releases = memory(0).releases;
    memory(0).write(9);
    use(0, key);
    EXPECT_EQ(memory(0).releases, releases + 1);
    payer(0).stop();
    const std::size_t messages = this->messages();

    at(1).lock(key);

    EXPECT_EQ(this->messages(), messages);
    EXPECT_EQ(memory(1).read(0), 9u);
    at(1).unlock(key);
}

// Threads of all nodes, two of each: no two threads hold the lock at once, and a thread that gets
// it knows all that was written under it. With every way in: tries, and unlocks that other threads
// make.
TEST_F(Locks, exclude_threads_of_all_nodes_and_carry_their_memory) {
    constexpr std::uint64_t rounds = 3000;
    std::atomic<int> inside{0}, wrong{0};
    std::uint64_t sum = 0;
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < 2 * nodes; ++thread) {
        threads.emplace_back([&, thread] {
            const std::uint32_t rank = thread % nodes;
            for (std::uint64_t i = 0; i < rounds;) {
                if ((i + thread) % 3 == 0) {
                    if (!at(rank).try_lock(key)) {
                        std::this_thread::yield();
                        continue;
                    }
                } else {
                    at(rank).lock(key);
                }
                wrong += ++inside != 1;
                std::uint64_t newest = 0;
                for (std::uint32_t node = 0; node < nodes; ++node)
                    newest = std::max(newest, memory(rank).read(node));
                wrong += newest != sum;
                memory(rank).write(++sum);
                if (i % 7 == 0) std::this_thread::yield();
                --inside;
                at(rank).unlock(key);
                ++i;
                if (i % 50 == 0) std::this_thread::yield();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(sum, rounds * 2 * nodes);
}

TEST_F(Locks, are_taken_by_a_try_where_they_lie_open_and_not_where_they_are_held) {
    use(0, key);
    memory(0).write(3);
    EXPECT_TRUE(at(1).try_lock(key));  // node 0 owes
    EXPECT_EQ(memory(1).read(0), 3u);
    EXPECT_FALSE(at(0).try_lock(key));
    EXPECT_FALSE(at(1).try_lock(key));
    EXPECT_FALSE(at(2).try_lock(key));
    at(1).unlock(key);
    EXPECT_TRUE(at(2).try_lock(key));
    at(2).unlock(key);
}

TEST_F(Locks, are_unset_by_any_node_and_take_its_writes_along) {
    at(0).lock(key);
    memory(1).write(5);
    at(1).unlock(key);
    EXPECT_TRUE(at(0).try_lock(key));
    EXPECT_EQ(memory(0).read(1), 5u);

    std::thread waiter{[&] {
        at(2).lock(key);
        EXPECT_EQ(memory(2).read(1), 6u);
        at(2).unlock(key);
    }};
    memory(1).write(6);
    at(1).unlock(key);
    waiter.join();
}

using LocksDeath = Locks;
TEST_F(LocksDeath, that_are_free_are_not_to_be_unset) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH(
        {
            use(0, key);
            at(1).unlock(key);
        },
        "unlock of the lock at 0x100000001240, which nobody holds");
}

// A try that fails leaves everything as it was: a thread that waits meanwhile gets the lock.
TEST_F(Locks, reach_who_waits_beside_tries_that_fail) {
    constexpr int rounds = 2000;
    std::atomic<int> taken{0};
    std::vector<std::thread> threads;
    for (const std::uint32_t rank : {0u, 1u}) {
        threads.emplace_back([&, rank] {
            for (int i = 0; i < rounds; ++i) use(rank, key);
            ++taken;
        });
    }
    std::thread tries{[&] {
        while (taken < 2) {
            if (at(2).try_lock(key)) at(2).unlock(key);
            std::this_thread::yield();
        }
    }};
    for (std::thread& thread : threads) thread.join();
    tries.join();
    EXPECT_EQ(taken, 2);
}

constexpr std::uint64_t soon_ns = HandOverCost::soon_min_ns;

TEST(LockKeeping, keeps_a_wanted_lock_only_where_threads_come_back_at_once) {
    LockKeeping keeping;
    keeping.unlocked();
    EXPECT_FALSE(keeping.keeps());
    std::uint64_t now_ns = 1'000'000;
    for (int stay = 0; stay < 5; ++stay) {
        keeping.left(now_ns);
        keeping.wanted_again(now_ns += soon_ns / 2, soon_ns);
    }
    for (std::uint32_t hold = 1; hold < LockKeeping::holds_max; ++hold) {
        keeping.unlocked();
        EXPECT_TRUE(keeping.keeps());
    }
    keeping.unlocked();
    EXPECT_FALSE(keeping.keeps());

    keeping.was_kept_in_vain();
    keeping.left(now_ns);
    keeping.wanted_again(now_ns += soon_ns / 2, soon_ns);
    keeping.unlocked();
    EXPECT_FALSE(keeping.keeps());
}

TEST(LockKeeping, a_thread_that_is_away_for_less_than_a_hand_over_comes_back_at_once) {
    const auto keeps_after_stays = [](std::uint64_t away_ns, std::uint64_t soon) {
        LockKeeping keeping;
        std::uint64_t now_ns = 1'000'000;
        for (int stay = 0; stay < 5; ++stay) {
            keeping.left(now_ns);
            keeping.wanted_again(now_ns += away_ns, soon);
        }
        keeping.unlocked();
        return keeping.keeps();
    };
    HandOverCost cost;
    EXPECT_FALSE(keeps_after_stays(10'000, cost.soon_ns()));
    for (int i = 0; i < 100; ++i) {
        cost.note_release(12'000);
        cost.note_acquire(4'000);
    }
    EXPECT_TRUE(keeps_after_stays(10'000, cost.soon_ns()));
    EXPECT_FALSE(keeps_after_stays(20'000, cost.soon_ns()));
}

TEST(HandOverCost, patience_is_a_few_hand_overs_within_bounds) {
    HandOverCost cost;
    EXPECT_EQ(cost.patience_ns(), HandOverCost::patience_min_ns);
    for (int i = 0; i < 100; ++i) {
        cost.note_release(12'000);
        cost.note_acquire(4'000);
    }
    EXPECT_NEAR(static_cast<double>(cost.patience_ns()), 64'000.0, 2'000.0);
    // A node that lost its processor for a second says little about the next time.
    cost.note_release(1'000'000'000);
    EXPECT_LT(cost.patience_ns(), 300'000u);
    for (int i = 0; i < 100; ++i) cost.note_release(1'000'000'000);
    EXPECT_EQ(cost.patience_ns(), HandOverCost::patience_max_ns);
}

TEST(LockKeeping, stays_until_misses_and_a_hand_over_are_a_fifth_of_the_stay) {
    constexpr std::uint64_t hand_over_ns = 10'000;
    LockKeeping keeping;
    std::uint64_t now_ns = 1'000'000;
    const auto comes = [&] {
        keeping.left(now_ns);
        keeping.wanted_again(now_ns, soon_ns);
        keeping.came(now_ns);
    };
    const auto holds = [&](std::uint64_t ns, std::uint64_t missed_ns) {
        keeping.locked(7);
        keeping.unlocked();
        keeping.missed(7 + missed_ns);
        now_ns += ns;
        return keeping.has_to_pay_off(now_ns, hand_over_ns);
    };
    EXPECT_FALSE(holds(1, 1'000));  // no thread has come back for it
    comes();
    EXPECT_FALSE(holds(1, 0));  // nothing had to be brought here
    EXPECT_TRUE(holds(1'000, 1'000));
    EXPECT_TRUE(holds(50'000, 0));
    EXPECT_FALSE(holds(4'000, 0));
    EXPECT_TRUE(holds(0, 1'000));
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(holds(1'900'000, 1'900'000));
    EXPECT_FALSE(holds(1'900'000, 1'900'000));  // for 20 ms at most
    comes();
    EXPECT_FALSE(holds(1, 0));
    EXPECT_TRUE(keeping.was_used());
    EXPECT_FALSE(keeping.was_used());
    keeping.was_kept_in_vain();
    EXPECT_FALSE(holds(0, 1'000));
}

TEST(LockKeeping, publishes_where_the_former_stay_ended_and_not_for_ever) {
    LockKeeping keeping;
    for (int hold = 0; hold < 3; ++hold) {
        keeping.unlocked();
        EXPECT_FALSE(keeping.publishes());
    }
    EXPECT_FALSE(keeping.publishes(true));  // it has always been here
    keeping.wanted_again(1, soon_ns);
    EXPECT_TRUE(keeping.publishes(true));
    for (int hold = 1; hold <= 20; ++hold) {
        keeping.unlocked();
        EXPECT_EQ(keeping.publishes(),
                  hold >= 3 && hold < 3 + static_cast<int>(LockKeeping::publications_max));
    }
}

}  // namespace
}  // namespace hiroba::dsm
