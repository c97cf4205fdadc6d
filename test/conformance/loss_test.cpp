// SPDX-License-Identifier: BSD-3-Clause
// Role: what every provider promises when a node dies or stands still: what is pending to the dead
// fails soon and blocks no other node; a node that was stopped has missed nothing.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "conformance/async_node.hpp"
#include "conformance/suite.hpp"
#include "gas/gas.hpp"

namespace hiroba::conformance {
namespace {

using net::AtomicOp;
using net::MessageKind;
using net::Outcome;
using net::Submission;
using net::Urgency;
using net::offload::Mode;

HIROBA_CONFORMANCE(Loss);

constexpr std::uint64_t second_ns = 1'000'000'000;

struct Ends {
    std::atomic<std::uint64_t> done{0}, lost{0};
    std::uint64_t all() const { return done.load() + lost.load(); }
    static void take(void* data, Outcome outcome) noexcept {
        auto& ends = *static_cast<Ends*>(data);
        (outcome == Outcome::done ? ends.done : ends.lost).fetch_add(1);
    }
};

/// A write, a read and an atomic on `peer`'s memory in turn.
Submission request(AsyncNode& node, NodeId peer, net::Handle mine, std::uint64_t i, Ends& ends) {
    const net::Callback callback{Ends::take, &ends};
    switch (i % 3) {
        case 0: return node.async->try_write({peer, {mine, 0}, {node.memory, 64}, 4096, callback});
        case 1: return node.async->try_read({peer, {node.memory, 64}, {mine, 0}, 4096, callback});
        default:
            return node.async->try_atomic(
                {peer, {node.memory, 0}, AtomicOp::fetch_add, 8, 1, 0, {mine, 0}, callback});
    }
}

TEST_P(Loss, of_a_node_fails_within_two_seconds_what_is_pending_to_it) {
    if (const char* const why = no_loss_can_be_tested()) GTEST_SKIP() << why;
    run_with_victim([](Rig& rig, NodeId victim) {
        AsyncNode node{rig, Mode::automatic};
        node.connect();
        std::vector<std::byte> memory(8192);
        const net::Handle mine = *node.async->register_local(memory);
        rig.meet();
        if (rig.self == victim) raise(SIGKILL);

        Ends ends;
        std::uint64_t asked = 0;
        std::atomic<std::uint64_t> lost_at_ns{0};
        std::thread launcher{[&] {
            rig.await_loss();
            lost_at_ns = now_ns();
        }};
        // At most 48 are out, before and after the news.
        for (std::uint64_t after = 0; after < 64; after += lost_at_ns != 0) {
            until_accepted([&] { return request(node, victim, mine, asked, ends); });
            ++asked;
            ASSERT_TRUE(node.endpoint->wait_until([&] { return ends.all() + 48 >= asked; },
                                                  now_ns() + 10 * second_ns));
        }
        launcher.join();
        ASSERT_TRUE(node.endpoint->wait_until([&] { return ends.all() == asked; },
                                              lost_at_ns + 2 * second_ns))
            << asked - ends.all() << " requests hang";
        // Far memory is gone with its node; near memory lives as long as a process maps it.
        const bool mapped = node.async->mapped(node.memory, victim) != nullptr;
        EXPECT_EQ(ends.lost.load() > 0, !mapped);

        // The dead node does not read them, and this one does not wait for that.
        const std::vector<std::byte> body(60'000);
        const Bytes parts[] = {Bytes{body}};
        for (int i = 0; i < 100; ++i) {
            node.endpoint->send(victim, MessageKind::test, Urgency::when_polled, parts);
        }
    });
}

// A thread may still ask a node that has nothing more to say, and may go.
TEST_P(Loss, of_a_node_behind_the_end_of_the_job_is_no_error) {
    if (const char* const why = no_loss_can_be_tested()) GTEST_SKIP() << why;
    run_with_victim([](Rig& rig, NodeId victim) {
        // Both outlive the body, as the thread does, which waits for an answer for ever.
        static auto endpoint = rig.open();
        static auto segment = *gas::Segment::allocate(*endpoint, 4096);
        ASSERT_TRUE(endpoint->connect());
        segment.attach();
        static std::atomic<std::uint64_t> asked{0};
        std::thread{[victim] {
            for (;; ++asked) segment.load({victim, 0});
        }}.detach();
        const auto go_on = [] {
            const std::uint64_t before = asked;
            return endpoint->wait_until([&] { return asked > before + 1; },
                                        now_ns() + 10 * second_ns);
        };
        // The victim too answers while it waits here.
        EXPECT_TRUE(rig.self == victim || go_on());
        endpoint->note_job_over();
        rig.meet();
        if (rig.self == victim) raise(SIGKILL);
        rig.await_loss();
        endpoint->wait_until([] { return false; }, now_ns() + second_ns / 2);
    });
}

void stop_for_a_second(pid_t process, std::uint64_t start_ns) {
    const auto until = [](std::uint64_t ns) {
        while (now_ns() < ns) usleep(1000);
    };
    until(start_ns + second_ns / 10);
    kill(process, SIGSTOP);
    until(start_ns + second_ns / 10 * 11);
    kill(process, SIGCONT);
}

TEST_P(Loss, is_not_what_a_node_suffers_that_stands_still_for_a_second) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "nobody notices";
    if (GetParam().simulated()) GTEST_SKIP() << "its nodes are no processes";
    run([](Rig& rig) {
        AsyncNode node{rig, Mode::automatic};
        std::atomic<std::uint64_t> messages{0};
        node.endpoint->on(MessageKind::test, count_message, &messages);
        node.connect();
        alignas(8) std::byte memory[8] = {};
        const net::Handle mine = *node.async->register_local(memory);
        const pid_t self = getpid();
        const auto all = rig.exchange(std::as_bytes(std::span(&self, 1)), -1);
        ASSERT_TRUE(all);
        auto pids = all;
        pid_t last = 0;
        std::memcpy(&last, pids->bytes.back().data(), sizeof last);
        rig.meet();

        // Node 0 stops the last node in the middle of what all do to their neighbours. A busy
        // machine may be slow with that, too.
        constexpr std::uint64_t rounds_min = 10;
        const std::uint64_t start_ns = now_ns();
        std::thread stopper;
        if (rig.self == NodeId{0}) {
            stopper = std::thread{[last, start_ns] { stop_for_a_second(last, start_ns); }};
        }
        std::uint64_t rounds = 0;
        Ends ends;
        while (now_ns() < start_ns + 3 * second_ns / 2 || rounds < rounds_min) {
            const Submission made = node.async->try_atomic({rig.next(),
                                                            {node.memory, 0},
                                                            AtomicOp::fetch_add,
                                                            8,
                                                            1,
                                                            0,
                                                            {mine, 0},
                                                            {Ends::take, &ends}});
            ASSERT_NE(made, Submission::refused);
            if (made == Submission::again) continue;
            node.endpoint->send(rig.next(), MessageKind::test, Urgency::when_polled, {});
            ++rounds;
            ASSERT_TRUE(node.endpoint->wait_until([&] { return ends.all() == rounds; },
                                                  now_ns() + 20 * second_ns));
        }
        if (stopper.joinable()) stopper.join();
        EXPECT_EQ(ends.lost.load(), 0u);

        // Each node tells all others how much it did.
        std::vector<std::uint64_t> told(rig.nodes);
        node.collectives->all_gather(std::as_bytes(std::span(&rounds, 1)),
                                     std::as_writable_bytes(std::span(told)));
        const std::uint64_t wanted = told[(rig.self.value + rig.nodes - 1) % rig.nodes];
        EXPECT_TRUE(node.endpoint->wait_until([&] { return messages.load() == wanted; },
                                              now_ns() + 10 * second_ns))
            << messages << " of " << wanted << " messages";
        std::uint64_t sum = 0;
        std::memcpy(&sum, node.async->local(node.memory).data(), sizeof sum);
        EXPECT_EQ(sum, wanted);
        rig.meet();
    });
}

}  // namespace
}  // namespace hiroba::conformance
