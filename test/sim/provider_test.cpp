// SPDX-License-Identifier: BSD-3-Clause
// Role: what is the simulator's own: a run follows from its seed, a bad wire is bad and yet nothing
// happens twice, cuts and crashes are noticed, and a card that takes one call at a time says so.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "gas/gas.hpp"
#include "net/provider/sim/sim_provider.hpp"
#include "sim/sim_job.hpp"

namespace hiroba::sim_test {
namespace {

using net::sim::NetworkOptions;
using net::sim::Scheduler;
using net::sim::SchedulerOptions;

NetworkOptions storm() {
    NetworkOptions options;
    options.loss = 20;
    options.duplicate = 20;
    options.reorder = 50;
    return options;
}

/// Each node adds to node 0's counter and sends its neighbour numbered messages.
struct Busy {
    std::uint64_t sum = 0;
    std::uint64_t out_of_order = 0;
    std::uint64_t hash = 0, events = 0, end_ns = 0;
    net::sim::Network::Counts counts;
    Scheduler::Outcome outcome{};
};

Busy be_busy(std::uint64_t seed, const NetworkOptions& wire) {
    constexpr std::uint64_t rounds = 40;
    Busy busy;
    net::sim::FiberStacks stacks;
    SimJob job{stacks, 3, {.seed = seed}, wire};
    busy.outcome = job.run([&](NodeId self) {
        struct Inbox {
            std::uint64_t expected = 0, wrong = 0;
        } inbox;
        const auto endpoint = job.open(self);
        auto segment = *gas::Segment::allocate(*endpoint, 4096);
        endpoint->on(
            net::MessageKind::test,
            [](void* context, NodeId, Bytes body) noexcept {
                auto& inbox = *static_cast<Inbox*>(context);
                std::uint64_t number = 0;
                std::memcpy(&number, body.data(), sizeof number);
                inbox.wrong += number != inbox.expected++;
            },
            &inbox);
        ASSERT_TRUE(endpoint->connect());
        segment.attach();
        for (std::uint64_t i = 0; i < rounds; ++i) {
            segment.fetch_add({NodeId{0}, 8}, 1);
            const Bytes part = std::as_bytes(std::span(&i, 1));
            endpoint->send(NodeId{(self.value + 1) % 3}, net::MessageKind::test,
                           net::Urgency::when_polled, {&part, 1});
        }
        endpoint->wait_until([&] { return inbox.expected == rounds; });
        job.gather(self, {});
        if (self == NodeId{0}) busy.sum = segment.load({NodeId{0}, 8});
        busy.out_of_order += inbox.wrong;
        job.gather(self, {});
    });
    EXPECT_EQ(busy.sum, 3 * rounds);
    busy.hash = job.scheduler().trace_hash();
    busy.events = job.scheduler().events();
    busy.end_ns = job.scheduler().time_ns();
    busy.counts = job.network().counts();
    return busy;
}

TEST(Simulator, repeats_a_run_event_by_event_from_its_seed) {
    const Busy first = be_busy(5, storm()), again = be_busy(5, storm());
    EXPECT_EQ(first.outcome, Scheduler::Outcome::ended);
    EXPECT_EQ(first.hash, again.hash);
    EXPECT_EQ(first.events, again.events);
    EXPECT_EQ(first.end_ns, again.end_ns);
    const Busy other = be_busy(6, storm());
    EXPECT_NE(first.hash, other.hash);
}

TEST(Simulator, loses_doubles_and_holds_back_packets_and_nothing_happens_twice_or_late) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const Busy busy = be_busy(seed, storm());
        EXPECT_EQ(busy.outcome, Scheduler::Outcome::ended);
        EXPECT_EQ(busy.out_of_order, 0u);
        EXPECT_GT(busy.counts.lost, busy.counts.sent / 10);
        EXPECT_GT(busy.counts.doubled, busy.counts.sent / 10);
        EXPECT_GT(busy.counts.held_back, busy.counts.sent / 4);
        EXPECT_GT(busy.counts.dropped, 0u);
        EXPECT_GE(busy.counts.resent, busy.counts.lost / 2);
    }
}

TEST(Simulator, takes_the_time_that_latency_and_bandwidth_say) {
    NetworkOptions wire;
    wire.latency_ns = 10'000;
    wire.jitter_ns = 0;
    wire.bytes_per_us = 1'000;
    net::sim::FiberStacks stacks;
    SimJob job{stacks, 2, {.turn_max_ns = 100}, wire};
    std::uint64_t word_ns = 0, megabyte_ns = 0;
    job.run([&](NodeId self) {
        const auto endpoint = job.open(self);
        auto segment = *gas::Segment::allocate(*endpoint, 1 << 20);
        ASSERT_TRUE(endpoint->connect());
        segment.attach();
        if (self == NodeId{0}) {
            const std::vector<std::byte> bytes(1 << 20);
            const std::uint64_t start_ns = job.scheduler().time_ns();
            segment.fetch_add({NodeId{1}, 0}, 1);
            word_ns = job.scheduler().time_ns() - start_ns;
            segment.put({NodeId{1}, 0}, bytes);
            megabyte_ns = job.scheduler().time_ns() - start_ns - word_ns;
        }
        job.gather(self, {});
    });
    EXPECT_GE(word_ns, 20'000u);
    EXPECT_LE(word_ns, 22'000u);
    EXPECT_GE(megabyte_ns, 1'048'576u + 20'000u);
    EXPECT_LE(megabyte_ns, 1'300'000u);
}

/// Counts what fails; the endpoint would end the process.
struct Listener final : net::Arrivals {
    void message(NodeId, net::MessageKind, Bytes) noexcept override {}
    void completed(net::OpId) noexcept override { ++completions; }
    void failed(net::OpId, NodeId) noexcept override { ++failures; }
    void silent(NodeId) noexcept override { ++silences; }
    int completions = 0, failures = 0, silences = 0;
};

/// Node 0 puts to node 1 after `harm(job)`, polling until something comes of it.
Listener put_after(const std::function<void(SimJob&, net::Provider&)>& harm) {
    NetworkOptions wire;
    wire.silence_max_ns = 50'000'000;
    net::sim::FiberStacks stacks;
    SimJob job{stacks, 2, {.limit_ns = 1'000'000'000}, wire};
    Listener listener;
    const auto outcome = job.run([&](NodeId self) {
        net::sim::SimProvider provider{job.network(), job.setup(self)};
        const net::RegionId region = *provider.allocate(4096);
        ASSERT_TRUE(provider.connect());
        if (self == NodeId{1}) return job.scheduler().park(900'000'000);
        harm(job, provider);
        const std::byte bytes[100] = {};
        ASSERT_EQ(provider.put({2}, NodeId{1}, region, 0, bytes), net::Post::posted);
        while (listener.completions + listener.failures == 0) {
            provider.poll(listener, 10);
            provider.sleep(
                net::Provider::Sleeper::waiter, 1'000'000, [](void*) { return false; }, nullptr);
        }
        provider.poll(listener, 10);
    });
    EXPECT_EQ(outcome, Scheduler::Outcome::ended) << outcome_name(outcome);
    return listener;
}

TEST(Simulator, brings_what_a_mended_wire_held_up) {
    const Listener listener = put_after([](SimJob& job, net::Provider&) {
        job.network().cut(NodeId{0}, NodeId{1}, true);
        job.scheduler().at(
            20'000'000, 0,
            [](void* job, std::uint64_t) {
                static_cast<SimJob*>(job)->network().cut(NodeId{0}, NodeId{1}, false);
            },
            &job, 0);
    });
    EXPECT_EQ(listener.completions, 1);
    EXPECT_EQ(listener.failures + listener.silences, 0);
}

TEST(Simulator, fails_what_goes_to_a_node_behind_a_wire_cut_for_good) {
    const Listener listener = put_after(
        [](SimJob& job, net::Provider&) { job.network().cut(NodeId{0}, NodeId{1}, true); });
    EXPECT_EQ(listener.completions, 0);
    EXPECT_EQ(listener.failures, 1);
    EXPECT_EQ(listener.silences, 1);
}

TEST(Simulator, fails_what_goes_to_a_node_that_crashed) {
    const Listener silent =
        put_after([](SimJob& job, net::Provider&) { job.network().crash(NodeId{1}); });
    EXPECT_EQ(silent.failures, 1);
    EXPECT_EQ(silent.silences, 1);
    const Listener told = put_after([](SimJob& job, net::Provider& provider) {
        job.network().crash(NodeId{1});
        provider.peer_lost(NodeId{1});
    });
    EXPECT_EQ(told.failures, 1);
    EXPECT_EQ(told.silences, 0);
}

/// Messages of one endpoint of a node: each carries the number of the endpoint it was sent in.
struct InTurn {
    std::uint64_t round = 0, came = 0, foreign = 0;
    static void take(void* context, NodeId, Bytes body) noexcept {
        auto& self = *static_cast<InTurn*>(context);
        std::uint64_t round = 0;
        std::memcpy(&round, body.data(), sizeof round);
        (round == self.round ? self.came : self.foreign) += 1;
    }
};

TEST(Simulator, gives_each_endpoint_of_a_node_a_card_as_new) {
    constexpr std::uint64_t floods = 3, messages = 300;  // of 8 KiB: many times the queue
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        net::sim::FiberStacks stacks;
        SimJob job{stacks, 2, {.seed = seed, .limit_ns = 60'000'000'000}, storm()};
        std::uint64_t came = 0, foreign = 0;
        const auto outcome = job.run([&](NodeId self) {
            const NodeId other{1 - self.value};
            std::vector<std::byte> body(8192);
            for (std::uint64_t round = 0; round < floods; ++round) {
                InTurn inbox{.round = round};
                const auto endpoint = job.open(self);
                endpoint->on(net::MessageKind::test, InTurn::take, &inbox);
                ASSERT_TRUE(endpoint->connect());
                std::memcpy(body.data(), &round, sizeof round);
                const Bytes parts[] = {Bytes{body}};
                for (std::uint64_t i = 0; i < messages; ++i) {
                    endpoint->send(other, net::MessageKind::test, net::Urgency::when_polled, parts);
                }
                endpoint->wait_until([&] { return inbox.came == messages; });
                job.gather(self, {});
                // These are under way, or lie unread, when their endpoints end.
                for (std::uint64_t i = 0; i < 10; ++i) {
                    endpoint->send(other, net::MessageKind::test, net::Urgency::when_polled, parts);
                }
                came += inbox.came;
                foreign += inbox.foreign;
            }
        });
        ASSERT_EQ(outcome, Scheduler::Outcome::ended) << outcome_name(outcome);
        EXPECT_EQ(foreign, 0u);
        EXPECT_GE(came, 2 * floods * messages);
    }
}

TEST(Simulator, says_when_nothing_can_go_on) {
    net::sim::FiberStacks stacks;
    SimJob job{stacks, 2, {}, {}};
    EXPECT_EQ(job.run([&](NodeId self) {
        if (self == NodeId{0}) job.gather(self, {});  // node 1 never comes
    }),
              Scheduler::Outcome::stuck);
}

TEST(SimulatorDeathTest, stops_at_two_threads_in_a_card_that_takes_one) {
    const auto two_threads = [](net::sim::Calls calls) {
        NetworkOptions wire;
        wire.calls = calls;
        wire.call_ns = 1000;
        net::sim::FiberStacks stacks;
        SimJob job{stacks, 2, {}, wire};
        std::uint64_t done = 0;
        job.run([&](NodeId self) {
            net::sim::SimProvider provider{job.network(), job.setup(self)};
            const net::RegionId region = *provider.allocate(4096);
            ASSERT_TRUE(provider.connect());
            Listener listener;
            const std::byte byte{};
            const auto put = [&] {
                provider.put({2}, NodeId{1 - self.value}, region, 0, {&byte, 1});
            };
            auto& other = job.scheduler().spawn(self, put);
            put();
            job.scheduler().join(other);
            while (listener.completions < 2) provider.poll(listener, 10);
            ++done;
            job.gather(self, {});
        });
        return done;
    };
    EXPECT_EQ(two_threads(net::sim::Calls::locked_queues), 2u);
    EXPECT_DEATH(two_threads(net::sim::Calls::one_thread), "are both in the card of node");
}

}  // namespace
}  // namespace hiroba::sim_test
