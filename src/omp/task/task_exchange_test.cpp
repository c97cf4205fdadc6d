// SPDX-License-Identifier: BSD-3-Clause
// Role: two nodes' pools and exchanges in one process, each step of their threads made by the test:
// which node gets a task that both wait for.
#include "omp/task/task_exchange.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "dsm/memory/address_map.hpp"
#include "dsm/test_parts/idle_memory.hpp"
#include "dsm/test_parts/wire_provider.hpp"
#include "omp/task/task_pool.hpp"

namespace hiroba::omp {
namespace {

using dsm::test::Wire;
using dsm::test::WireProvider;

class CountingMemory final : public dsm::test::IdleMemory {
public:
    using IdleMemory::IdleMemory;
    void release(dsm::Others) noexcept override { ++releases; }
    void acquire(dsm::Others) noexcept override {}
    std::size_t news_for_anyone(MutableBytes) noexcept override { return 8; }
    std::size_t news_bytes_max() const noexcept override { return 8; }
    void learn(NodeId, Bytes) noexcept override { ++learned; }
    int releases = 0, learned = 0;
};

/// A node with one thread, which stands in `implicit`.
struct TestNode {
    TestNode(Wire& wire, const dsm::AddressMap& map, NodeId self)
        : memory(map),
          endpoint(net::Endpoint::over(self, 2, std::make_unique<WireProvider>(wire, self))),
          pool({.endpoint = endpoint.get(), .memory = &memory}) {
        pool.exchange()->begin_region(1, 2);
        implicit = pool.with_books([](TaskBook& book) {
            Task& task = book.make();
            book.make_implicit(task, &book.everywhere());
            return &task;
        });
    }
    void make_task() {
        pool.with_books_and_attend([this](TaskBook& book) {
            Task& task = book.make();
            book.create(task, *implicit);
            book.make_ready(task);
        });
    }
    void hear_everything() {
        while (endpoint->poll()) {
        }
    }
    /// As in a barrier. Null: it found nothing, and has asked the other node.
    Task* look_for_any() {
        Task* const task =
            pool.choose_first([](TaskBook& book) { return book.take_any(book.everywhere()); });
        if (task == nullptr) pool.exchange()->ask_any();
        return task;
    }
    /// As in a taskwait.
    Task* look_for_own() {
        Task* const task =
            pool.choose_first([this](TaskBook& book) { return book.take_descendant(*implicit); });
        if (task != nullptr) return task;
        std::vector<TaskHandle> away;
        pool.with_books([&](TaskBook& book) { book.list_away(*implicit, away); });
        if (!away.empty()) pool.exchange()->ask_for(away);
        return nullptr;
    }

    void pass_barrier() { pool.exchange()->pass_barrier(); }

    CountingMemory memory;
    std::unique_ptr<net::Endpoint> endpoint;
    TaskPool pool;
    Task* implicit = nullptr;
};

/// Node 0 has made a task and given it to node 1, which had nothing to do. The mail is under way.
struct GivenAway : testing::Test {
    GivenAway() {
        for (TestNode* each : {&creator, &thief}) EXPECT_TRUE(each->endpoint->connect());
        creator.make_task();
        thief.hear_everything();  // that there are tasks
        EXPECT_EQ(thief.look_for_any(), nullptr);
        creator.hear_everything();  // that the other wants one
        creator.pool.attend();      // as the clerk does, and the thread that makes the next task
        EXPECT_EQ(creator.memory.releases, 1);
    }
    void expect_taken_at_once(const Task* taken, int turns) const {
        ASSERT_NE(taken, nullptr) << "it was handed over " << creator.memory.releases << " and "
                                  << thief.memory.releases << " times";
        EXPECT_EQ(turns, 1);
        EXPECT_EQ(thief.memory.releases, 0);
    }
    Wire wire{2};
    dsm::AddressMap map{{.nodes = 2}};
    TestNode creator{wire, map, NodeId{0}}, thief{wire, map, NodeId{1}};
};

// Each node has the other's wish in its inbox beside the task, every time: if it served the wish
// first, the task would go to and fro for ever.
TEST_F(GivenAway, a_task_that_both_nodes_look_for_is_executed_where_it_comes_first) {
    EXPECT_EQ(creator.look_for_any(), nullptr);
    int turns = 0;
    Task* taken = nullptr;
    for (; taken == nullptr && turns < 100; ++turns) {
        TestNode& node = turns % 2 == 0 ? thief : creator;
        node.hear_everything();
        taken = node.look_for_any();
    }
    expect_taken_at_once(taken, turns);
}

TEST_F(GivenAway, a_task_that_its_parent_waits_for_is_executed_where_it_comes_first) {
    EXPECT_EQ(creator.look_for_own(), nullptr);
    int turns = 0;
    Task* taken = nullptr;
    for (; taken == nullptr && turns < 100; ++turns) {
        const bool elsewhere = turns % 2 == 0;
        TestNode& node = elsewhere ? thief : creator;
        node.hear_everything();
        taken = elsewhere ? node.look_for_any() : node.look_for_own();
    }
    expect_taken_at_once(taken, turns);
}

// The creator is through a barrier at which a thread of the other node still helps. News of the
// task leave out what the barrier has told, which that node may not have acquired: neither they nor
// the task may come before.
TEST(TasksBehindBarriers, a_task_from_behind_a_barrier_waits_until_its_thief_has_passed_it) {
    Wire wire{2};
    dsm::AddressMap map{{.nodes = 2}};
    TestNode creator{wire, map, NodeId{0}}, thief{wire, map, NodeId{1}};
    for (TestNode* each : {&creator, &thief}) ASSERT_TRUE(each->endpoint->connect());
    creator.pass_barrier();
    creator.make_task();
    thief.hear_everything();
    EXPECT_EQ(thief.look_for_any(), nullptr);
    creator.hear_everything();
    creator.pool.attend();
    thief.hear_everything();
    EXPECT_EQ(thief.look_for_any(), nullptr);
    EXPECT_EQ(thief.memory.learned, 0);
    thief.pass_barrier();
    EXPECT_TRUE(thief.pool.exchange()->has_work());
    EXPECT_NE(thief.look_for_any(), nullptr);
    EXPECT_EQ(thief.memory.learned, 1);
}

// Node 1 has begun the region and asks, while node 0 is still in the one before.
TEST(TasksOfTheNextRegion, a_wish_waits_until_its_receiver_has_begun_the_region) {
    Wire wire{2};
    dsm::AddressMap map{{.nodes = 2}};
    TestNode late{wire, map, NodeId{0}}, asking{wire, map, NodeId{1}};
    for (TestNode* each : {&late, &asking}) ASSERT_TRUE(each->endpoint->connect());
    asking.pool.exchange()->begin_region(2, 2);
    asking.pool.exchange()->ask_for({});
    late.hear_everything();
    EXPECT_TRUE(late.pool.exchange()->has_work());
    late.pool.attend();
    EXPECT_FALSE(late.pool.exchange()->has_work());
    late.pool.exchange()->begin_region(2, 2);
    EXPECT_TRUE(late.pool.exchange()->has_work());
}

// A task that a node does not need itself is handed out all the same.
TEST_F(GivenAway, a_node_keeps_one_task_for_itself_and_hands_out_the_next) {
    EXPECT_EQ(creator.look_for_any(), nullptr);
    thief.hear_everything();
    for (int i = 0; i < 2; ++i) thief.make_task();
    EXPECT_GE(thief.memory.releases, 1);
    ASSERT_NE(thief.look_for_any(), nullptr);
    creator.hear_everything();
    EXPECT_NE(creator.look_for_any(), nullptr);
}

}  // namespace
}  // namespace hiroba::omp
