// SPDX-License-Identifier: BSD-3-Clause
// Tests of tasks on the workers of one node.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "hiroba/tasks.hpp"

namespace hiroba::tasks {
namespace {

std::unique_ptr<Scheduler> open(std::uint32_t workers, Options options = {}) {
    options.workers = workers;
    std::string why;
    auto made = Scheduler::open(nullptr, options, &why);
    EXPECT_NE(made, nullptr) << why;
    return made;
}

std::uint64_t fib(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    auto child = async([n] { return fib(n - 1); });
    const std::uint64_t other = fib(n - 2);
    return child.get() + other;
}

std::uint64_t fib_of_offers(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    auto child = async(anywhere, [n] { return fib_of_offers(n - 1); });
    const std::uint64_t other = fib_of_offers(n - 2);
    return child.get() + other;
}

std::uint64_t plain(int n) {
    return n < 2 ? static_cast<std::uint64_t>(n) : plain(n - 1) + plain(n - 2);
}

class Workers : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Tasks, Workers, ::testing::Values(1, 2, 5));

TEST_P(Workers, futures_bring_what_their_tasks_return) {
    const auto scheduler = open(GetParam());
    EXPECT_EQ(scheduler->run([] { return fib(15); }), 610u);
    EXPECT_EQ(scheduler->run([] { return fib_of_offers(15); }), 610u);
    // A task each for fib's calls with a child, 986 of them, and the first one; twice.
    EXPECT_EQ(scheduler->counts().tasks, 2 * 987u);
}

TEST_P(Workers, one_run_comes_after_the_other) {
    const auto scheduler = open(GetParam());
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(scheduler->run([i] { return fib(i % 10) + static_cast<std::uint64_t>(i); }),
                  plain(i % 10) + static_cast<std::uint64_t>(i));
}

TEST_P(Workers, every_element_is_visited_once) {
    const auto scheduler = open(GetParam());
    std::vector<std::atomic<int>> visits(1'000);
    scheduler->run([&] {
        parallel_for(0, 1'000, 7, [&](int first, int last) {
            for (int i = first; i < last; ++i) visits[static_cast<std::size_t>(i)].fetch_add(1);
        });
        parallel_for(5, 5, 1, [](int, int) { FAIL() << "nothing to visit"; });
    });
    for (const auto& each : visits) EXPECT_EQ(each.load(), 1);
}

TEST_P(Workers, a_group_waits_for_tasks_of_all_sorts_in_any_order) {
    const auto scheduler = open(GetParam());
    static std::atomic<std::uint64_t> sum;
    for (int round = 0; round < 5; ++round) {
        sum = 0;
        scheduler->run([] {
            Group group;
            for (std::uint64_t i = 0; i < 100; ++i) {
                if (i % 3 == 0) group.run([i] { sum += i; });
                if (i % 3 == 1) group.run(anywhere, [i] { sum += i; });
                if (i % 3 == 2) group.run(on(here()), [i] { sum += i; });
            }
            group.wait();
            EXPECT_EQ(sum.load(), 4950u);
            group.run([] { sum += 1; });
            group.wait();
            EXPECT_EQ(sum.load(), 4951u);
            auto first = async(anywhere, [] { return 1; });
            auto second = async(anywhere, [] { return 2; });
            EXPECT_EQ(first.get() + 2 * second.get(), 5);  // the oldest first
        });
    }
}

TEST_P(Workers, invoke_runs_all) {
    const auto scheduler = open(GetParam());
    int a = 0, b = 0, c = 0;
    scheduler->run([&] { invoke([&] { a = 1; }, [&] { b = 2; }, [&] { c = 3; }); });
    EXPECT_EQ(a + b + c, 6);
}

TEST_P(Workers, tasks_that_yield_let_the_others_run) {
    const auto scheduler = open(GetParam());
    std::vector<int> order;
    std::atomic<int> turn{0};
    scheduler->run([&] {
        Group group;
        // Each waits for the one that is started after it: only a task that yields can pass this.
        for (int i = 0; i < 20; ++i)
            group.run([&, i] {
                while (turn.load() != 19 - i) yield();
                order.push_back(i);
                turn.fetch_add(1);
            });
    });
    ASSERT_EQ(order.size(), 20u);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], 19 - i);
}

TEST_P(Workers, closures_are_moved_and_destroyed_once) {
    const auto scheduler = open(GetParam());
    const auto shared = std::make_shared<int>(5);
    const int found = scheduler->run([&] {
        auto only = std::make_unique<int>(7);
        auto child = async([held = shared, owned = std::move(only)] { return *held + *owned; });
        auto text =
            async([held = shared] { return std::string(100, 'x') + std::to_string(*held); });
        return child.get() + static_cast<int>(text.get().size());
    });
    EXPECT_EQ(found, 12 + 101);
    EXPECT_EQ(shared.use_count(), 1);
}

TEST(Tasks, more_children_than_continuations_have_room_run_all_the_same) {
    const auto scheduler = open(2, {.stack_bytes = std::size_t{16} << 10});
    struct Deep {
        static int down(int depth) {
            if (depth == 0) return 0;
            auto child = async([depth] { return down(depth - 1); });
            return child.get() + 1;
        }
    };
    EXPECT_EQ(scheduler->run([] { return Deep::down(10'000); }), 10'000);
}

TEST(Tasks, more_offers_than_there_is_room_run_at_once) {
    const auto scheduler = open(1, {.offers = 4});
    static int ran;
    ran = 0;
    scheduler->run([] {
        Group group;
        for (int i = 0; i < 100; ++i) group.run(anywhere, [] { ++ran; });
        EXPECT_EQ(ran, 96);
    });
    EXPECT_EQ(ran, 100);
}

TEST(Tasks, another_worker_goes_on_with_a_task_whose_child_computes) {
    const auto scheduler = open(2);
    std::atomic<bool> may_end{false};
    // The child ends only when its parent has gone on: on one thread that never is.
    scheduler->run([&] {
        auto child = async([&] {
            while (!may_end.load()) std::this_thread::yield();
            return worker();
        });
        may_end = true;
        const std::uint32_t mine = worker();
        EXPECT_NE(child.get(), mine);
    });
    EXPECT_GE(scheduler->counts().taken, 1u);
}

TEST(Tasks, wrong_options_are_refused_with_a_line) {
    std::string why;
    EXPECT_EQ(Scheduler::open(nullptr, {.workers = 0}, &why), nullptr);
    EXPECT_NE(why.find("0 workers; there may be 1 to 256 (Options::workers)"), std::string::npos);
    EXPECT_EQ(Scheduler::open(nullptr, {.stack_bytes = 100}, &why), nullptr);
    EXPECT_NE(why.find("Options::stack_bytes"), std::string::npos);
    EXPECT_EQ(Scheduler::open(nullptr, {.offers = 100}, &why), nullptr);
    EXPECT_NE(why.find("Options::offers"), std::string::npos);
    EXPECT_EQ(Scheduler::open(nullptr, {.workers = 300}, nullptr), nullptr);
}

TEST(TasksDeathTest, misuse_ends_with_a_line) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH((void)async([] {}), "called outside of Scheduler::run");
    EXPECT_DEATH(
        {
            const auto scheduler = open(1);
            scheduler->run([&] { scheduler->run([] {}); });
        },
        "Scheduler::run.. is called by a task");
    EXPECT_DEATH(open(1)->run([] { throw std::runtime_error("thrown"); }), "thrown");
    EXPECT_DEATH(open(1)->run([] { auto sent = async(on(NodeId{3}), [] {}); }), "node 3 of 1");
}

}  // namespace
}  // namespace hiroba::tasks
