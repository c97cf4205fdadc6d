// SPDX-License-Identifier: BSD-3-Clause
// Role: the endpoint over a provider that does exactly what a test tells it; what depends on real
// processes is in test/conformance.
#include "net/net.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "net/provider/registry.hpp"
#include "net/test_parts/idle_provider.hpp"

namespace hiroba::net {
namespace {

/// Node 0 of two. Delivers what is in `inbox`, takes `room` messages, and may not be entered twice.
class ScriptedProvider final : public test::IdleProvider {
public:
    ScriptedProvider() : IdleProvider({"scripted", 65536, false, false, false}) {}

    Post send(NodeId to, MessageKind, Urgency, std::span<const Bytes> parts) noexcept override {
        Inside inside{*this};
        if (room == 0) return Post::again;
        --room;
        sent.emplace_back(to.value, static_cast<int>(parts[0][0]));
        return Post::done;
    }
    std::size_t poll(Arrivals& arrivals, std::size_t) noexcept override {
        Inside inside{*this};
        if (inbox.empty()) return 0;
        const std::byte body = inbox.front();
        inbox.pop_front();
        arrivals_entered = true;
        arrivals.message(NodeId{1}, MessageKind::test, Bytes{&body, 1});
        arrivals_entered = false;
        return 1;
    }
    void sleep(Sleeper, std::uint64_t, bool (*)(void*), void*) noexcept override { sched_yield(); }
    void wake(NodeId node, Sleeper role) noexcept override {
        wakes.fetch_or(1u << (node.value * 2 + (role == Sleeper::service)));
    }

    std::deque<std::byte> inbox;
    std::atomic<int> room{1'000'000};
    std::vector<std::pair<std::uint32_t, int>> sent;
    std::atomic<unsigned> wakes{0};
    std::atomic<int> overlaps{0};

private:
    /// Counts calls that meet; a handler's own call inside poll() is not one.
    struct Inside {
        explicit Inside(ScriptedProvider& provider) : provider(provider) {
            nested = provider.arrivals_entered && provider.owner == pthread_self();
            if (nested) return;
            provider.overlaps += provider.entered.exchange(true);
            provider.owner = pthread_self();
        }
        ~Inside() {
            if (!nested) provider.entered = false;
        }
        ScriptedProvider& provider;
        bool nested;
    };
    std::atomic<bool> entered{false};
    std::atomic<bool> arrivals_entered{false};
    std::atomic<pthread_t> owner{};
};

constexpr unsigned own_waiters = 1, own_service = 2, peer_service = 8;

/// Node 0's endpoint and the script behind it.
struct Scripted {
    ScriptedProvider* provider = new ScriptedProvider;
    std::unique_ptr<Endpoint> endpoint =
        Endpoint::over(NodeId{0}, 2, std::unique_ptr<Provider>(provider));

    void send(int number) {
        const auto body = static_cast<std::byte>(number);
        const Bytes parts[] = {Bytes{&body, 1}};
        endpoint->send(NodeId{1}, MessageKind::test, Urgency::when_polled, parts);
    }
    /// A handler that sends three messages.
    static void send_three(void* context, NodeId, Bytes) noexcept {
        for (const int number : {1, 2, 3}) static_cast<Scripted*>(context)->send(number);
    }
};

using Sent = std::vector<std::pair<std::uint32_t, int>>;

TEST(Endpoint, has_whoever_delivered_something_wake_the_other_waiters) {
    Scripted node;
    node.endpoint->on(
        MessageKind::test, [](void*, NodeId, Bytes) noexcept {}, nullptr);
    EXPECT_FALSE(node.endpoint->poll());
    EXPECT_EQ(node.provider->wakes, 0u);
    node.provider->inbox.push_back(std::byte{1});
    EXPECT_TRUE(node.endpoint->poll());
    EXPECT_EQ(node.provider->wakes, own_waiters);
}

TEST(Endpoint, lets_a_handler_send_without_waiting_for_room_and_nobody_overtake_it) {
    Scripted node;
    node.endpoint->on(MessageKind::test, Scripted::send_three, &node);
    node.provider->room = 1;
    node.provider->inbox.push_back(std::byte{1});
    EXPECT_TRUE(node.endpoint->poll());  // returns although only one of three had room
    EXPECT_EQ(node.provider->sent, (Sent{{1, 1}}));
    EXPECT_EQ(node.provider->wakes & (own_service | peer_service), own_service | peer_service);

    node.provider->room = 3;
    node.send(4);
    EXPECT_EQ(node.provider->sent, (Sent{{1, 1}, {1, 2}, {1, 3}, {1, 4}}));
    EXPECT_EQ(node.provider->room, 0);
}

TEST(Endpoint, sends_what_handlers_left_behind_from_the_service_thread) {
    Scripted node;
    node.endpoint->on(MessageKind::test, Scripted::send_three, &node);
    node.provider->room = 0;
    node.provider->inbox.push_back(std::byte{1});
    EXPECT_TRUE(node.endpoint->poll());
    node.provider->wakes = 0;
    std::thread service{[&] { node.endpoint->serve(); }};
    while ((node.provider->wakes & peer_service) == 0) sched_yield();  // it has tried
    node.provider->room = 3;
    while (node.provider->room != 0) sched_yield();
    node.endpoint->stop();
    service.join();
    EXPECT_EQ(node.provider->sent, (Sent{{1, 1}, {1, 2}, {1, 3}}));
}

TEST(Endpoint, waits_for_room_outside_handlers_and_has_the_target_make_some) {
    Scripted node;
    node.provider->room = 0;
    std::thread sender{[&] { node.send(7); }};
    while ((node.provider->wakes & peer_service) == 0) sched_yield();
    EXPECT_TRUE(node.provider->sent.empty());
    node.provider->room = 1;
    sender.join();
    EXPECT_EQ(node.provider->sent, (Sent{{1, 7}}));
}

TEST(Endpoint, enters_a_provider_that_is_not_parallel_one_thread_at_a_time) {
    Scripted node;
    constexpr int count = 20'000;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
        threads.emplace_back([&] {
            for (int i = 0; i < count; ++i) {
                node.send(1);
                node.endpoint->poll();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(node.provider->overlaps, 0);
    EXPECT_EQ(node.provider->sent.size(), 3u * count);
}

TEST(EndpointDeathTest, stops_at_a_message_nobody_handles_and_a_node_nobody_knows) {
    Scripted node;
    node.provider->inbox.push_back(std::byte{1});
    EXPECT_DEATH(node.endpoint->poll(), "no handler for kind [0-9]+, sent by node 1");
    EXPECT_DEATH(node.endpoint->send(NodeId{2}, MessageKind::test, Urgency::when_polled, {}),
                 "message to node 2 of 2");
}

TEST(Registry, names_what_there_is_when_asked_for_what_is_not) {
    const auto made = make_provider("carrier-pigeon", {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, ErrorKind::usage);
    EXPECT_EQ(
        made.error().text,
        "HIROBA_PROVIDER=carrier-pigeon: no such provider; there is shm, udp, auto, ucx, shm+ucx, "
        "verbs, shm+verbs");
    // A library or a device may be missing here.
    for (const char* name : provider_names()) {
        const auto known = make_provider(name, {});
        EXPECT_TRUE(known || known.error().kind == ErrorKind::environment) << name;
    }
}

TEST(Registry, refuses_a_rank_outside_the_job) {
    const auto made = make_provider("shm", {.self = NodeId{2}, .nodes = 2, .exchange = {}});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, ErrorKind::refused);
}

}  // namespace
}  // namespace hiroba::net
