// SPDX-License-Identifier: BSD-3-Clause
// Role: what every provider promises of messages: whole, once, in order, also when queues are full.
#include <atomic>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "conformance/suite.hpp"

namespace hiroba::conformance {
namespace {

using net::MessageKind;
using net::Post;
using net::Urgency;

HIROBA_CONFORMANCE(Messages);

/// The i-th message of a stream: its size and bytes follow from its sender, its receiver and i.
struct Stream {
    NodeId from, to;
    std::size_t bytes_max;

    std::vector<std::byte> message(std::uint64_t index) const {
        Random random{from.value * 1'000'003u + to.value * 10'007u + index};
        // Mostly small, sometimes anything up to the largest, and both ends of the range.
        std::size_t bytes = random.below(200);
        if (index % 16 == 3) bytes = random.below(bytes_max + 1);
        if (index % 64 == 9) bytes = bytes_max;
        if (index % 64 == 10) bytes = 0;
        std::vector<std::byte> body(bytes);
        for (std::byte& b : body) b = static_cast<std::byte>(random() >> 56);
        return body;
    }
};

/// Checks what arrives from each node against its stream.
struct Inbox {
    explicit Inbox(const Rig& rig, std::size_t bytes_max)
        : self(rig.self), bytes_max(bytes_max), arrived(rig.nodes) {}

    static void take(void* context, NodeId from, Bytes body) noexcept {
        auto& inbox = *static_cast<Inbox*>(context);
        const std::uint64_t index = inbox.arrived[from.value]++;
        const auto expected = Stream{from, inbox.self, inbox.bytes_max}.message(index);
        const bool same = body.size() == expected.size() &&
                          (body.empty() || !std::memcmp(body.data(), expected.data(), body.size()));
        inbox.wrong += !same;
        ++inbox.total;
    }
    NodeId self;
    std::size_t bytes_max;
    std::vector<std::uint64_t> arrived;
    std::atomic<std::uint64_t> total{0};
    std::atomic<std::uint64_t> wrong{0};
};

TEST_P(Messages, arrive_whole_once_and_in_order_from_everyone_also_oneself) {
    run([](Rig& rig) {
        constexpr std::uint64_t count = 1'500;
        auto endpoint = rig.open();
        const std::size_t bytes_max = endpoint->provider().limits().message_bytes_max;
        Inbox inbox{rig, bytes_max};
        endpoint->on(MessageKind::test, Inbox::take, &inbox);
        ASSERT_TRUE(endpoint->connect());

        for (std::uint64_t i = 0; i < count; ++i) {
            for (std::uint32_t to = 0; to < rig.nodes; ++to) {
                const auto body = Stream{rig.self, NodeId{to}, bytes_max}.message(i);
                const std::size_t cut = body.size() / 3;
                const Bytes parts[] = {
                    {body.data(), cut}, {}, {body.data() + cut, body.size() - cut}};
                endpoint->send(NodeId{to}, MessageKind::test, Urgency::when_polled, parts);
            }
        }
        endpoint->wait_until([&] { return inbox.total == count * rig.nodes; });

        EXPECT_EQ(inbox.wrong, 0u);
        for (const std::uint64_t arrived : inbox.arrived) EXPECT_EQ(arrived, count);
        rig.meet();
    });
}

TEST_P(Messages, of_every_size_around_the_record_unit_keep_their_bytes) {
    run([](Rig& rig) {
        auto endpoint = rig.open();
        const std::size_t bytes_max = endpoint->provider().limits().message_bytes_max;
        struct Sizes {
            std::vector<std::size_t> sent;
            std::atomic<std::size_t> arrived{0};
            std::size_t wrong = 0;
            static void take(void* context, NodeId, Bytes body) noexcept {
                auto& sizes = *static_cast<Sizes*>(context);
                sizes.wrong += body.size() != sizes.sent[sizes.arrived];
                for (std::size_t i = 0; i < body.size(); ++i) {
                    sizes.wrong += body[i] != static_cast<std::byte>(i * 7 + body.size());
                }
                ++sizes.arrived;
            }
        } sizes;
        for (std::size_t bytes = 0; bytes <= 300; ++bytes) sizes.sent.push_back(bytes);
        for (std::size_t power = 512; power <= bytes_max; power *= 2) {
            for (int off = -9; off <= 9; ++off) {
                if (power + off <= bytes_max) sizes.sent.push_back(power + off);
            }
        }
        endpoint->on(MessageKind::test, Sizes::take, &sizes);
        ASSERT_TRUE(endpoint->connect());

        for (const std::size_t bytes : sizes.sent) {
            std::vector<std::byte> body(bytes);
            for (std::size_t i = 0; i < bytes; ++i) body[i] = static_cast<std::byte>(i * 7 + bytes);
            const Bytes parts[] = {body};
            endpoint->send(rig.next(), MessageKind::test, Urgency::when_polled, parts);
        }
        endpoint->wait_until([&] { return sizes.arrived == sizes.sent.size(); });

        EXPECT_EQ(sizes.wrong, 0u);
        rig.meet();
    });
}

TEST_P(Messages, a_full_queue_says_again_loses_nothing_and_opens_once_emptied) {
    run([](Rig& rig) {
        auto endpoint = rig.open();
        struct Counter {
            std::uint64_t expected = 0;
            bool in_order = true;
            static void take(void* context, NodeId, Bytes body) noexcept {
                auto& counter = *static_cast<Counter*>(context);
                std::uint64_t number = 0;
                std::memcpy(&number, body.data(), sizeof number);
                counter.in_order &= number == counter.expected++;
            }
        } counter;
        endpoint->on(MessageKind::test, Counter::take, &counter);
        ASSERT_TRUE(endpoint->connect());
        const auto try_send = [&](std::uint64_t number) {
            const Bytes parts[] = {std::as_bytes(std::span(&number, 1))};
            return endpoint->provider().send(rig.next(), MessageKind::test, Urgency::when_polled,
                                             parts);
        };

        std::uint64_t sent = 0;
        while (sent < 10'000'000 && try_send(sent) == Post::done) ++sent;
        EXPECT_GE(sent, 1'000u);       // a queue worth its name
        EXPECT_LT(sent, 10'000'000u);  // that has an end
        EXPECT_EQ(try_send(sent), Post::again);
        rig.meet();  // every queue is full
        while (counter.expected < sent) endpoint->poll();
        rig.meet();  // every queue is empty
        Post reopened = try_send(sent);
        if (!endpoint->provider().limits().completes_inline) {
            // Here the sender has yet to be told that the queue is empty.
            while (reopened == Post::again) {
                endpoint->poll();
                reopened = try_send(sent);
            }
        }
        EXPECT_EQ(reopened, Post::done);
        endpoint->wait_until([&] { return counter.expected == sent + 1; });

        EXPECT_TRUE(counter.in_order);
        rig.meet();
    });
}

TEST_P(Messages, floods_in_every_direction_at_once_come_to_an_end) {
    run([](Rig& rig) {
        constexpr std::uint64_t count = 200;
        auto endpoint = rig.open();
        std::atomic<std::uint64_t> arrived{0};
        endpoint->on(MessageKind::test, count_message, &arrived);
        ASSERT_TRUE(endpoint->connect());
        const std::vector<std::byte> body(endpoint->provider().limits().message_bytes_max);
        const Bytes parts[] = {body};

        // Two threads of a node share each queue.
        const auto flood = [&] {
            for (std::uint64_t i = 0; i < count; ++i) {
                for (std::uint32_t to = 0; to < rig.nodes; ++to) {
                    endpoint->send(NodeId{to}, MessageKind::test, Urgency::when_polled, parts);
                }
            }
        };
        Thread other{flood};
        flood();
        other.join();
        endpoint->wait_until([&] { return arrived == 2 * count * rig.nodes; });
        rig.meet();
    });
}

TEST_P(Messages, urgent_ones_reach_a_node_whose_threads_all_compute) {
    run([](Rig& rig) {
        constexpr std::uint32_t rounds = 200;
        auto endpoint = rig.open();
        std::atomic<std::uint64_t> arrived{0};
        endpoint->on(MessageKind::test, count_message, &arrived);
        ASSERT_TRUE(endpoint->connect());
        Thread service{[&] { endpoint->serve(); }};

        const std::uint64_t start_ns = now_ns();
        for (std::uint32_t round = 1; round <= rounds; ++round) {
            endpoint->send(rig.next(), MessageKind::test, Urgency::wake_service, {});
            while (arrived < round) yield();  // computes: neither polls nor waits
        }
        // Far less than if each had to wait for the end of a service thread's sleep.
        EXPECT_LT(now_ns() - start_ns, rounds * rig.limit_ns(25'000'000, 100'000'000));

        endpoint->stop();
        service.join();
        rig.meet();
    });
}

TEST_P(Messages, a_sender_needs_no_help_of_the_program_to_empty_a_full_queue) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "alone, the sender itself empties the queue";
    run([](Rig& rig) {
        auto endpoint = rig.open();
        constexpr std::uint32_t count = 20'000;  // 80 full queues
        std::atomic<std::uint64_t> arrived{0};
        endpoint->on(MessageKind::test, count_message, &arrived);
        ASSERT_TRUE(endpoint->connect());
        if (rig.self == NodeId{0}) {
            const std::vector<std::byte> body(1024);
            const Bytes parts[] = {body};
            // Far less than if each had to wait for the end of a service thread's sleep: once at
            // least, as a thread may lose its core meanwhile.
            const std::uint64_t limit_ns = rig.limit_ns(4'000'000'000, 8'000'000'000);
            std::uint64_t took_ns = limit_ns;
            for (int attempt = 0; attempt < 3 && took_ns >= limit_ns; ++attempt) {
                const std::uint64_t start_ns = now_ns();
                for (std::uint32_t i = 0; i < count; ++i) {
                    endpoint->send(NodeId{1}, MessageKind::test, Urgency::when_polled, parts);
                }
                took_ns = now_ns() - start_ns;
            }
            EXPECT_LT(took_ns, limit_ns);
            rig.meet();
        } else {
            Thread service{[&] { endpoint->serve(); }};
            rig.meet();  // blocks like a long system call
            endpoint->stop();
            service.join();
        }
    });
}

}  // namespace
}  // namespace hiroba::conformance
