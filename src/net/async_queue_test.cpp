// SPDX-License-Identifier: BSD-3-Clause
// Role: what is queued: requests that join others, foreign calls, several queues.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "net/async.hpp"
#include "net/test_parts/late_provider.hpp"

namespace hiroba::net {
namespace {

using offload::Mode;

constexpr Mode every_mode[] = {Mode::automatic, Mode::always, Mode::never};

/// While something is under way further requests wait and leave together; nobody is woken for that.
TEST(AsyncQueue, joins_what_is_under_way_and_sends_it_as_one_list) {
    Node node{Mode::automatic};
    std::atomic<int> done{0};
    std::vector<std::byte> mine(64);
    const Handle to = *node.async->register_local(mine);
    const auto read = [&] {
        return node.async->try_read({far_node, {node.memory, 0}, {to, 0}, 8, {count_up, &done}});
    };
    for (int i = 0; i < 5; ++i) ASSERT_EQ(read(), Submission::accepted);
    EXPECT_EQ(node.provider->calls, 1);
    EXPECT_EQ(node.provider->service_wakes, 0);
    node.endpoint->poll();
    EXPECT_EQ(node.provider->calls, 5);
    EXPECT_EQ(node.provider->longest_list, 4u);
    node.drain();
    EXPECT_EQ(done, 5);
    ASSERT_EQ(read(), Submission::accepted);  // alone again: at once
    EXPECT_EQ(node.provider->calls, 6);
    node.drain();
}

/// A provider that gathers is handed small requests at once, since they may join in a datagram.
/// Requests wait in the queue while the provider is busy, and so do large ones, which fill
/// datagrams by themselves.
TEST(AsyncQueue, hands_small_requests_to_a_provider_that_gathers_unless_it_is_busy) {
    Node node{Mode::automatic, true};
    std::atomic<int> done{0};
    std::vector<std::byte> mine(1000);
    const Handle own = *node.async->register_local(mine);
    const auto write = [&](std::uint64_t bytes) {
        return node.async->try_write(
            {far_node, {own, 0}, {node.memory, 0}, bytes, {count_up, &done}});
    };
    const auto is_after = [&](int calls, std::size_t gathered) {
        return node.provider->calls == calls && node.provider->gathered == gathered;
    };
    ASSERT_EQ(write(8), Submission::accepted);
    EXPECT_TRUE(is_after(1, 0));  // alone
    ASSERT_EQ(write(8), Submission::accepted);
    EXPECT_TRUE(is_after(2, 1));
    node.provider->busy = true;
    ASSERT_EQ(write(8), Submission::accepted);
    EXPECT_TRUE(is_after(2, 1));
    node.provider->busy = false;
    ASSERT_EQ(write(1000), Submission::accepted);
    EXPECT_TRUE(is_after(2, 1));
    node.endpoint->poll();
    EXPECT_EQ(node.provider->calls, 4);
    EXPECT_EQ(node.provider->service_wakes, 0);
    node.drain();
    EXPECT_EQ(done, 4);
}

/// Between its question and its first poll a thread lets others ask, and looks once more; where
/// nothing is under way it polls at once.
TEST(AsyncQueue, gives_others_a_turn_before_it_polls_for_an_answer) {
    Node node{Mode::automatic, true};
    std::atomic<int> done{0};
    std::vector<std::byte> mine(8);
    const Handle own = *node.async->register_local(mine);
    const auto polls_at_looks = [&] {
        std::vector<int> seen;
        const int before = node.provider->polls;
        node.endpoint->wait_until([&] {
            seen.push_back(node.provider->polls - before);
            return seen.size() == 3;
        });
        return seen;
    };
    EXPECT_EQ(polls_at_looks(), (std::vector{0, 1, 2}));
    ASSERT_EQ(node.async->try_read({far_node, {node.memory, 0}, {own, 0}, 8, {count_up, &done}}),
              Submission::accepted);
    EXPECT_EQ(polls_at_looks(), (std::vector{0, 0, 1}));
    node.drain();
    EXPECT_EQ(polls_at_looks(), (std::vector{0, 1, 2}));
    // Many fill datagrams as they are.
    node.provider->room = 100;
    for (std::uint32_t i = 0; i <= offload::Engine::few_max; ++i) {
        ASSERT_EQ(
            node.async->try_read({far_node, {node.memory, 0}, {own, 0}, 8, {count_up, &done}}),
            Submission::accepted);
    }
    EXPECT_EQ(polls_at_looks(), (std::vector{0, 1, 2}));
    node.drain();
}

/// What joins while a poll takes away all that was under way has no other poll to hope for.
TEST(AsyncQueue, sends_what_has_joined_in_the_poll_that_ends_the_rest) {
    Node node{Mode::automatic};
    struct Chain {
        Node& node;
        Handle to;
        std::atomic<int> done{0};
    } chain{node, {}};
    std::vector<std::byte> mine(64);
    chain.to = *node.async->register_local(mine);
    const auto first = [](void* data, Outcome) noexcept {
        auto& it = *static_cast<Chain*>(data);
        EXPECT_EQ(it.node.async->try_read(
                      {far_node, {it.node.memory, 0}, {it.to, 8}, 8, {count_up, &it.done}}),
                  Submission::accepted);
        it.done.fetch_add(1);
    };
    ASSERT_EQ(node.async->try_read({far_node, {node.memory, 0}, {chain.to, 0}, 8, {first, &chain}}),
              Submission::accepted);
    ASSERT_EQ(node.async->try_read(
                  {far_node, {node.memory, 0}, {chain.to, 16}, 8, {count_up, &chain.done}}),
              Submission::accepted);
    for (int polls = 0; chain.done < 2 && polls < 10; ++polls) node.endpoint->poll();
    ASSERT_EQ(chain.done, 2);
    EXPECT_TRUE(node.provider->calls == 3 || node.provider->service_wakes > 0)
        << node.provider->calls << " requests left, and nobody looks after the last";
    node.drain();
    EXPECT_EQ(chain.done, 3);
}

TEST(AsyncQueue, runs_foreign_calls_on_the_service_thread_alone) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        std::atomic<const ThreadContext*> by{nullptr};
        std::atomic<int> done{0};
        const auto note = [](void* data) noexcept {
            static_cast<std::atomic<const ThreadContext*>*>(data)->store(&this_thread());
        };
        std::size_t accepted = 0;
        while (node.async->try_call({note, &by, {count_up, &done}}) == Submission::accepted) {
            ++accepted;
        }
        EXPECT_EQ(accepted, offload::Engine::calls_capacity);
        for (int polls = 0; polls < 10; ++polls) node.endpoint->poll();
        EXPECT_EQ(by.load(), nullptr);
        EXPECT_FALSE(node.async->idle());
        EXPECT_EQ(node.async->try_call({}), Submission::refused);
        std::thread service{[&] { node.endpoint->serve(); }};
        node.drain();
        EXPECT_EQ(done, static_cast<int>(accepted));
        EXPECT_NE(by.load(), nullptr);
        EXPECT_NE(by.load(), &this_thread());
        node.endpoint->stop();
        service.join();
    }
}

TEST(AsyncQueue, empties_all_of_several_queues) {
    std::unique_ptr<Endpoint> endpoint =
        Endpoint::over(NodeId{0}, 2, std::make_unique<LateProvider>());
    Async async{*endpoint, Mode::always, 4};
    const Handle memory = *async.allocate(1000);
    ASSERT_TRUE(endpoint->connect());
    async.attach();
    std::atomic<int> done{0};
    std::vector<std::byte> mine(64);
    const Handle to = *async.register_local(mine);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20; ++i) {
                EXPECT_EQ(async.try_read({far_node, {memory, 0}, {to, 0}, 8, {count_up, &done}}),
                          Submission::accepted);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(async.idle());
    endpoint->wait_until([&] { return done == 160; });
    EXPECT_TRUE(async.idle());
}

}  // namespace
}  // namespace hiroba::net
