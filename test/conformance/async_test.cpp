// SPDX-License-Identifier: BSD-3-Clause
// Role: the asynchronous requests and the collectives between real processes, over every provider,
// with every way a request can take, by the layer's classes and by the face that programs have.
#include "net/async.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "conformance/async_node.hpp"
#include "conformance/suite.hpp"

namespace hiroba::conformance {
namespace {

using net::AtomicOp;
using net::Submission;

HIROBA_CONFORMANCE(Requests);

void count_up(void* data, net::Outcome) noexcept {
    static_cast<std::atomic<std::uint64_t>*>(data)->fetch_add(1);
}

TEST_P(Requests, of_several_threads_of_every_node_all_happen_once) {
    run([](Rig& rig) {
        on_every_surface(rig, [&](auto& node) {
            node.connect();
            // Even: half of the additions go to each of two words.
            const std::uint64_t count = rig.storm ? 60 : rig.rounds(1'000), threads = 4;
            const auto work = [&](std::uint64_t thread) {
                alignas(8) std::byte memory[8 + 64];
                const net::Handle mine = *node.async->register_local(memory);
                std::atomic<std::uint64_t> done{0};
                const std::uint64_t place = 4096 * (1 + rig.self.value * threads + thread);
                for (std::uint64_t i = 0; i < count; ++i) {
                    std::memset(memory + 8, static_cast<int>(i), 64);
                    until_accepted([&] {
                        return node.async->try_atomic({NodeId{0},
                                                       {node.memory, i % 2 * 8},
                                                       AtomicOp::fetch_add,
                                                       i % 2 == 0 ? 8u : 4u,
                                                       3,
                                                       0,
                                                       {mine, 0},
                                                       {count_up, &done}});
                    });
                    until_accepted([&] {
                        return node.async->try_write({rig.next(),
                                                      {mine, 8},
                                                      {node.memory, place + i % 32 * 64},
                                                      64,
                                                      {count_up, &done}});
                    });
                    node.endpoint->wait_until([&] { return done == 2 * (i + 1); });
                }
                std::byte copy[64];
                const net::Handle to = *node.async->register_local(copy);
                until_accepted([&] {
                    return node.async->try_read({rig.next(),
                                                 {node.memory, place + (count - 1) % 32 * 64},
                                                 {to, 0},
                                                 64,
                                                 {count_up, &done}});
                });
                node.endpoint->wait_until([&] { return done == 2 * count + 1; });
                EXPECT_EQ(std::memcmp(copy, memory + 8, 64), 0);
            };
            std::vector<Thread> others;
            for (std::uint64_t thread = 1; thread < threads; ++thread)
                others.emplace_back(work, thread);
            work(0);
            for (Thread& other : others) other.join();
            node.collectives->barrier();
            if (rig.self == NodeId{0}) {
                std::uint64_t sums[2];
                std::memcpy(sums, node.async->local(node.memory).data(), sizeof sums);
                EXPECT_EQ(sums[0], 3 * count / 2 * threads * rig.nodes);
                EXPECT_EQ(sums[1], 3 * count / 2 * threads * rig.nodes);
            }
            rig.meet();
        });
    });
}

/// Answers every message with one of the same arguments, plus one.
template <class Requests>
struct Echo {
    Requests* async;
    std::atomic<std::uint64_t> answers{0};
    static void asked(void* context, NodeId from, std::span<const std::uint64_t> arguments,
                      Bytes payload) noexcept {
        auto& self = *static_cast<Echo*>(context);
        const std::uint64_t sum[] = {arguments[0] + payload.size()};
        // The answer is short, and as many may be under way as were asked for.
        const Submission made = self.async->try_message(
            {.target = from, .id = {1}, .arguments = sum, .payload = {}, .on_complete = {}});
        EXPECT_EQ(made, Submission::accepted);
    }
    static void answered(void* context, NodeId, std::span<const std::uint64_t> arguments,
                         Bytes) noexcept {
        static_cast<Echo*>(context)->answers += arguments[0];
    }
};

TEST_P(Requests, by_active_message_are_answered_by_a_node_that_computes) {
    run([](Rig& rig) {
        on_every_surface(rig, [&](auto& node) {
            using EchoHere = Echo<std::remove_reference_t<decltype(*node.async)>>;
            EchoHere echo{node.async.get()};
            node.async->on({0}, EchoHere::asked, &echo);
            node.async->on({1}, EchoHere::answered, &echo);
            node.connect();
            rig.meet();
            std::vector<std::byte> payload(3000);
            const net::Handle mine = *node.async->register_local(payload);
            // All nodes but 0 leave the work to their service threads.
            if (rig.self == NodeId{0}) {
                std::uint64_t wanted = 0;
                const std::uint64_t count = rig.storm ? 60 : rig.rounds(800);
                for (std::uint64_t i = 0; i < count; ++i) {
                    const std::uint64_t argument[] = {i};
                    const std::size_t bytes = i % 2 == 0 ? 0 : 1000 + i;
                    until_accepted([&] {
                        return node.async->try_message({.target = rig.next(),
                                                        .id = {0},
                                                        .arguments = argument,
                                                        .payload = {mine, 0},
                                                        .payload_bytes = bytes,
                                                        .on_complete = {}});
                    });
                    wanted += i + bytes;
                    node.endpoint->wait_until([&] { return echo.answers == wanted; });
                }
            }
            rig.meet();
        });
    });
}

/// A library that belongs to one thread and bears no call beside another.
struct ForeignLibrary {
    const ThreadContext* owner = nullptr;
    std::atomic<int> inside{0};
    std::uint64_t sum = 0;
    bool misused = false;
    std::atomic<std::uint64_t> after{0};  ///< callbacks
    struct Amount {
        ForeignLibrary* library;
        std::uint64_t value;
    };
    static void add(void* data) noexcept {
        const auto& amount = *static_cast<Amount*>(data);
        ForeignLibrary& self = *amount.library;
        if (self.owner == nullptr) self.owner = &this_thread();
        self.misused =
            self.misused || self.owner != &this_thread() || self.inside.fetch_add(1) != 0;
        self.sum += amount.value;
        self.inside.fetch_sub(1);
    }
};

TEST_P(Requests, of_foreign_calls_run_once_on_one_thread_beside_everything_else) {
    run([](Rig& rig) {
        on_every_surface(rig, [&](auto& node) {
            node.connect();
            rig.meet();
            ForeignLibrary library;
            const std::uint64_t count = rig.rounds(400), threads = 3;
            const auto work = [&](std::uint64_t thread) {
                alignas(8) std::byte memory[8];
                const net::Handle mine = *node.async->register_local(memory);
                std::atomic<std::uint64_t> done{0};
                for (std::uint64_t i = 0; i < count; ++i) {
                    ForeignLibrary::Amount amount{&library, thread * count + i};
                    const std::uint64_t before = done;
                    until_accepted([&] {
                        return node.async->try_call(
                            {ForeignLibrary::add, &amount, {count_up, &done}});
                    });
                    until_accepted([&] {
                        return node.async->try_read(
                            {rig.next(), {node.memory, 0}, {mine, 0}, 8, {count_up, &done}});
                    });
                    node.endpoint->wait_until([&] { return done == before + 2; });
                }
            };
            std::vector<Thread> others;
            for (std::uint64_t thread = 1; thread < threads; ++thread)
                others.emplace_back(work, thread);
            work(0);
            for (Thread& other : others) other.join();
            const std::uint64_t all = threads * count;
            EXPECT_EQ(library.sum, all * (all - 1) / 2);
            EXPECT_FALSE(library.misused);
            EXPECT_NE(library.owner, &this_thread());
            EXPECT_EQ(node.async->try_call({}), Submission::refused);
            rig.meet();
        });
    });
}

TEST_P(Requests, are_refused_options_that_nobody_can_have) {
    run([](Rig& rig) {
        const net::Options wrong[] = {{.queues = 0},
                                      {.queues = 17},
                                      {.queues = 2, .executors = 3},
                                      {.queues = 2, .executors = 0}};
        for (const net::Options& options : wrong) {
            const auto made = net::NetworkOver::make(rig.open(), options, {});
            ASSERT_FALSE(made);
            EXPECT_NE(made.error().text.find("Options::"), std::string::npos);
        }
        FaceNode node{rig, net::Offload::always, 4};
        node.connect();
        EXPECT_GE(node.made->executors(), 1u);
        EXPECT_EQ(node.made->executors() > 1,
                  std::string_view(node.made->provider()) == "shm" ||
                      std::string_view(node.made->provider()) == "verbs");
        rig.meet();
    });
}

TEST_P(Requests, of_foreign_calls_reach_a_thread_that_sleeps) {
    run([](Rig& rig) {
        FaceNode node{rig, net::Offload::automatic, 1};
        node.connect();
        ForeignLibrary library;
        constexpr std::uint64_t rounds = 20, safety_net_ns = 100'000'000;
        std::uint64_t spent_ns = 0;
        for (std::uint64_t i = 1; i <= rounds; ++i) {
            node.made->wait_until([] { return false; }, 2'000'000);  // longer than it stays up
            ForeignLibrary::Amount amount{&library, i};
            std::atomic<std::uint64_t> done{0};
            const std::uint64_t begun_ns = now_ns();
            until_accepted([&] {
                return node.async->try_call({ForeignLibrary::add, &amount, {count_up, &done}});
            });
            node.endpoint->wait_until([&] { return done == 1; });
            spent_ns += now_ns() - begun_ns;
        }
        EXPECT_EQ(library.sum, rounds * (rounds + 1) / 2);
        EXPECT_LT(spent_ns, rounds / 2 * safety_net_ns);
        rig.meet();
    });
}

// Over a provider that maps its peers a request ends on the thread that makes it, and nobody polls.
// Without a ring the sleeper would wake by its safety net.
TEST_P(Requests, that_end_at_once_wake_a_thread_that_waits_for_them) {
    if (GetParam().simulated()) GTEST_SKIP() << "threads share that of the simulator";
    run([](Rig& rig) {
        FaceNode node{rig, net::Offload::automatic, 1};
        node.connect();
        constexpr std::uint64_t rounds = 11, safety_net_ns = 100'000'000;
        const auto nap = [] { usleep(10'000); };  // polls nothing; the waiter falls asleep
        std::atomic<std::uint64_t> done{0}, begun_ns{0}, seen{0};
        std::vector<std::uint64_t> late_ns;
        Thread waiter{[&] {
            for (std::uint64_t round = 1; round <= rounds; ++round) {
                node.made->wait_until([&] { return done >= round; });
                late_ns.push_back(now_ns() - begun_ns);
                seen = round;
            }
        }};
        const NodeId next{(rig.self.value + 1) % rig.nodes};
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            nap();
            begun_ns = now_ns();
            until_accepted([&] {
                return node.async->try_write(
                    {next, {node.memory, 64}, {node.memory, 0}, 8, {count_up, &done}});
            });
            while (seen < round) nap();
        }
        waiter.join();
        std::sort(late_ns.begin(), late_ns.end());
        EXPECT_TRUE(rig.storm || late_ns[rounds / 2] < safety_net_ns / 2) << late_ns[rounds / 2];
        rig.meet();
    });
}

TEST_P(Requests, that_find_a_queue_full_or_are_refused_are_not_waited_for) {
    run([](Rig& rig) {
        for (const auto offload :
             {net::Offload::automatic, net::Offload::always, net::Offload::never}) {
            FaceNode node{rig, offload, 1};
            node.connect();
            net::Network& network = *node.made;
            constexpr std::uint64_t enough_ns = 60'000'000'000;
            net::Pending pending;
            std::uint64_t again = 0;
            const auto write = [&](std::uint64_t offset) {
                const Submission made =
                    network.try_write_async({.target = rig.next(),
                                             .from = {node.memory, 0},
                                             .to = {node.memory, offset},
                                             .bytes = 8,
                                             .on_complete = pending.callback()});
                again += made == Submission::again;
                return made;
            };
            // More than the queue and the provider hold; on, where the queue is emptied as fast as
            // it is filled.
            const bool fills = offload == net::Offload::always;
            const std::uint64_t begun_ns = now_ns();
            for (std::uint64_t i = 0; i < 5'000 || (fills && again == 0); ++i) {
                if (now_ns() - begun_ns > enough_ns) break;
                ASSERT_EQ(network.insist([&] { return write(4096); }), Submission::accepted);
            }
            EXPECT_TRUE(network.wait_until([&] { return pending.done(); }, enough_ns));
            if (fills) {
                EXPECT_GT(again, 0u);
            }
            EXPECT_EQ(write(1 << 20), Submission::refused);
            EXPECT_TRUE(pending.done());
            // One callback for all attempts counts as well.
            const net::WriteParams one{
                rig.next(), {node.memory, 0}, {node.memory, 4096}, 8, pending.callback()};
            EXPECT_TRUE(pending.done());
            for (int i = 0; i < 5'000; ++i)
                network.insist([&] { return network.try_write_async(one); });
            EXPECT_TRUE(network.wait_until([&] { return pending.done(); }, enough_ns));
            rig.meet();
        }
    });
}

TEST_P(Requests, of_atomics_drop_the_old_value_where_nobody_says_where_it_goes) {
    run([](Rig& rig) {
        on_every_surface(rig, [&](auto& node) {
            node.connect();
            const auto words = [&] {
                const MutableBytes here = node.async->local(node.memory);
                return std::span(reinterpret_cast<std::uint64_t*>(here.data()), 16);
            };
            words()[0] = 1111;
            node.collectives->barrier();
            std::atomic<std::uint64_t> done{0};
            for (const std::uint32_t bytes : {4u, 8u}) {
                until_accepted([&] {
                    return node.async->try_atomic({.target = rig.next(),
                                                   .at = {node.memory, 64},
                                                   .bytes = bytes,
                                                   .operand = 5,
                                                   .on_complete = {count_up, &done}});
                });
            }
            node.endpoint->wait_until([&] { return done == 2; });
            node.collectives->barrier();
            EXPECT_EQ(words()[0], 1111u);
            EXPECT_EQ(words()[8], 10u);
            rig.meet();
        });
    });
}

TEST_P(Requests, behind_others_under_way_complete_while_nobody_waits) {
    run([](Rig& rig) {
        on_both_surfaces(rig, [&](auto& node) {
            node.connect();
            rig.meet();
            constexpr std::uint64_t rounds = 40, together = 8, safety_net_ns = 100'000'000;
            constexpr std::uint64_t attempts = 3;  // a thread may lose its core in one
            alignas(8) std::byte memory[8 * together];
            const net::Handle mine = *node.async->register_local(memory);
            std::atomic<std::uint64_t> done{0};
            std::uint64_t least_ns = ~std::uint64_t{0}, begun_ns = now_ns();
            for (std::uint64_t round = 1; round <= attempts * rounds; ++round) {
                // Some while answers to the first come in, whichever thread takes those.
                for (std::uint64_t i = 0; i < together; ++i) {
                    if (round % 4 == i % 4) yield();
                    until_accepted([&] {
                        return node.async->try_atomic({rig.next(),
                                                       {node.memory, 0},
                                                       AtomicOp::fetch_add,
                                                       8,
                                                       1,
                                                       0,
                                                       {mine, 8 * i},
                                                       {count_up, &done}});
                    });
                }
                while (done != round * together) yield();
                if (round % rounds != 0) continue;
                least_ns = std::min(least_ns, now_ns() - begun_ns);
                begun_ns = now_ns();
            }
            EXPECT_TRUE(rig.storm || least_ns < rounds / 2 * safety_net_ns);
            rig.meet();
            std::uint64_t sum = 0;
            std::memcpy(&sum, node.async->local(node.memory).data(), sizeof sum);
            EXPECT_EQ(sum, attempts * rounds * together);
            rig.meet();
        });
    });
}

HIROBA_CONFORMANCE(CollectiveOperations);

std::byte byte_of(std::uint32_t from, std::uint32_t to, std::size_t at) {
    return static_cast<std::byte>(from * 11 + to * 5 + at * 3);
}

TEST_P(CollectiveOperations, bring_everybody_the_same_answers_at_every_size) {
    run([](Rig& rig) {
        on_both_surfaces(rig, [&](auto& node) {
            node.connect();
            auto& all = *node.collectives;
            const std::uint32_t self = rig.self.value;
            for (const std::size_t bytes :
                 {std::size_t{0}, std::size_t{1}, std::size_t{56}, std::size_t{8192},
                  std::size_t{8193}, std::size_t{30'000}}) {
                std::vector<std::byte> out(bytes * rig.nodes), in(bytes * rig.nodes), want = in;
                for (std::uint32_t rank = 0; rank < rig.nodes; ++rank) {
                    for (std::size_t i = 0; i < bytes; ++i) {
                        out[rank * bytes + i] = byte_of(self, rank, i);
                        want[rank * bytes + i] = byte_of(rank, self, i);
                    }
                }
                all.all_to_all(out, in, bytes);
                EXPECT_EQ(in, want) << bytes;

                for (std::uint32_t rank = 0; rank < rig.nodes; ++rank) {
                    for (std::size_t i = 0; i < bytes; ++i) {
                        want[rank * bytes + i] = byte_of(rank, 0, i);
                    }
                }
                all.all_gather(Bytes{out}.first(bytes), in);
                EXPECT_EQ(in, want) << bytes;

                const NodeId root{rig.nodes - 1};
                std::vector<std::byte> data(bytes);
                if (rig.self == root) data.assign(out.begin(), out.begin() + bytes);
                all.broadcast(root, data);
                for (std::size_t i = 0; i < bytes; ++i) {
                    ASSERT_EQ(data[i], byte_of(root.value, 0, i)) << bytes;
                }
            }
            rig.meet();
        });
    });
}

TEST_P(CollectiveOperations, reduce_to_the_same_bits_everywhere) {
    run([](Rig& rig) {
        on_both_surfaces(rig, [&](auto& node) {
            node.connect();
            // Sums whose value depends on the order of the terms.
            std::vector<double> values(3000);
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = (rig.self.value % 2 == 0 ? 1e16 : -1e16) + static_cast<double>(i);
            }
            node.collectives->all_reduce(std::span(values),
                                         [](double a, double b) { return a + b; });
            std::vector<double> everyones(values.size() * rig.nodes);
            node.collectives->all_gather(std::as_bytes(std::span(values)),
                                         std::as_writable_bytes(std::span(everyones)));
            for (std::size_t i = 0; i < everyones.size(); ++i) {
                ASSERT_EQ(everyones[i], values[i % values.size()]);
            }
            std::uint64_t most[] = {rig.self.value * 10ull, 100 - rig.self.value};
            node.collectives->all_reduce(
                std::span<std::uint64_t>(most),
                [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
            EXPECT_EQ(most[0], (rig.nodes - 1) * 10ull);
            EXPECT_EQ(most[1], 100u);
            rig.meet();
        });
    });
}

TEST_P(CollectiveOperations, let_nobody_out_of_a_barrier_before_all_are_in) {
    run([](Rig& rig) {
        on_both_surfaces(rig, [&](auto& node) {
            node.connect();
            alignas(8) std::byte memory[8];
            const net::Handle old = *node.async->register_local(memory);
            const std::uint64_t rounds = rig.storm ? 40 : rig.rounds(2'000);
            for (std::uint64_t round = 1; round <= rounds; ++round) {
                std::atomic<std::uint64_t> done{0};
                until_accepted([&] {
                    return node.async->try_atomic({NodeId{0},
                                                   {node.memory, 0},
                                                   AtomicOp::fetch_add,
                                                   8,
                                                   1,
                                                   0,
                                                   {old, 0},
                                                   {count_up, &done}});
                });
                node.endpoint->wait_until([&] { return done == 1; });
                node.collectives->barrier();
                if (rig.self == NodeId{0}) {
                    std::uint64_t arrived = 0;
                    std::memcpy(&arrived, node.async->local(node.memory).data(), sizeof arrived);
                    ASSERT_EQ(arrived, round * rig.nodes);
                }
                node.collectives->barrier();
            }
            rig.meet();
        });
    });
}

}  // namespace
}  // namespace hiroba::conformance
