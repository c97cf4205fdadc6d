// SPDX-License-Identifier: BSD-3-Clause
// Role: the queue by itself: its ends, its wrap, and what it does with bytes no one should have
// sent.
#include "net/provider/shm/ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "net/wire/record.hpp"

namespace hiroba::net::shm {
namespace {

/// A queue in private memory.
struct Queue {
    std::unique_ptr<RingControl> control = std::make_unique<RingControl>();
    std::vector<std::byte> data = std::vector<std::byte>(ring_bytes);
    RingWriter writer{control.get(), data.data()};
    RingReader reader{control.get(), data.data(), NodeId{3}};

    bool write(std::span<const std::byte> body) {
        const Bytes parts[] = {body};
        return writer.write(MessageKind::test, parts, body.size());
    }
};

/// Remembers bodies.
struct Bodies final : Arrivals {
    std::vector<std::vector<std::byte>> bodies;
    void message(NodeId from, MessageKind kind, Bytes body) noexcept override {
        EXPECT_EQ(from, NodeId{3});
        EXPECT_EQ(kind, MessageKind::test);
        bodies.emplace_back(body.begin(), body.end());
    }
    void completed(OpId) noexcept override { ADD_FAILURE(); }
};

std::vector<std::byte> body_of(std::size_t bytes, std::size_t seed) {
    std::vector<std::byte> body(bytes);
    for (std::size_t i = 0; i < bytes; ++i) body[i] = static_cast<std::byte>(seed * 13 + i);
    return body;
}

TEST(Ring, keeps_bodies_whole_wherever_its_end_falls) {
    // 64-byte steps in the first body move the end of the ring through every place of the second.
    for (std::size_t first = 0; first < 1'000; first += 61) {
        Queue queue;
        Bodies arrived;
        for (std::size_t round = 0; round < 40; ++round) {
            const auto small = body_of(first, round);
            const auto large = body_of(message_bytes_max - first * 7, round + 1);
            ASSERT_TRUE(queue.write(small) && queue.write(large));
            EXPECT_FALSE(queue.reader.empty());
            arrived.bodies.clear();
            while (queue.reader.read(arrived, 1) != 0) {
            }
            ASSERT_EQ(arrived.bodies.size(), 2u);
            EXPECT_EQ(arrived.bodies[0], small);
            EXPECT_EQ(arrived.bodies[1], large);
            EXPECT_TRUE(queue.reader.empty());
        }
    }
}

TEST(Ring, takes_a_message_exactly_when_there_is_room) {
    Queue queue;
    const auto body = body_of(record_unit_bytes - wire::record_header_bytes, 1);  // one unit
    std::size_t written = 0;
    while (queue.write(body)) ++written;
    EXPECT_EQ(written, ring_bytes / record_unit_bytes);

    Bodies arrived;
    EXPECT_EQ(queue.reader.read(arrived, 1), 1u);
    EXPECT_FALSE(queue.write(body));  // the next read gives the place back
    EXPECT_TRUE(queue.reader.has_work());
    EXPECT_EQ(queue.reader.read(arrived, 0), 0u);
    EXPECT_TRUE(queue.write(body));
    EXPECT_FALSE(queue.write(body));
    EXPECT_FALSE(queue.write(body_of(body.size() + 1, 1)));
}

TEST(Ring, delivers_no_more_than_asked_and_no_more_than_was_there) {
    Queue queue;
    Bodies arrived;
    for (std::size_t i = 0; i < 10; ++i) ASSERT_TRUE(queue.write(body_of(8, i)));
    EXPECT_EQ(queue.reader.read(arrived, 4), 4u);
    EXPECT_EQ(queue.reader.read(arrived, 100), 6u);
    EXPECT_EQ(queue.reader.read(arrived, 100), 0u);
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(arrived.bodies[i], body_of(8, i));
}

TEST(Ring, reuses_bytes_only_after_their_message_was_delivered) {
    Queue queue;
    struct Overwriter final : Arrivals {
        explicit Overwriter(Queue& queue) : queue(queue) {}
        Queue& queue;
        void message(NodeId, MessageKind, Bytes body) noexcept override {
            const std::vector<std::byte> before(body.begin(), body.end());
            while (queue.write(body_of(1'000, 99))) {  // as much as there is room for
            }
            EXPECT_TRUE(std::memcmp(before.data(), body.data(), body.size()) == 0);
        }
        void completed(OpId) noexcept override {}
    } overwriter{queue};
    for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(queue.write(body_of(message_bytes_max, i)));
    EXPECT_EQ(queue.reader.read(overwriter, 3), 3u);
}

TEST(Ring, leaves_a_sender_who_refills_it_after_about_a_queueful) {
    Queue queue;
    struct Refiller final : Arrivals {
        explicit Refiller(Queue& queue) : queue(queue) {}
        Queue& queue;
        void message(NodeId, MessageKind, Bytes) noexcept override {
            while (queue.write(body_of(1'000, 1))) {  // records that do not end where the ring does
            }
        }
        void completed(OpId) noexcept override {}
    } refiller{queue};
    ASSERT_TRUE(queue.write(body_of(10, 1)));
    const std::size_t delivered = queue.reader.read(refiller, 1'000'000);
    EXPECT_GE(delivered, ring_bytes / 1'024);
    EXPECT_LE(delivered, ring_bytes / 1'024 + 2);
    EXPECT_TRUE(queue.reader.empty());  // the writer could not refill what was not given back
    EXPECT_EQ(queue.reader.read(refiller, 1), 0u);
    EXPECT_FALSE(queue.reader.has_work());
    EXPECT_TRUE(queue.write(body_of(10, 1)));
}

TEST(Ring, carries_a_stream_between_two_threads) {
    Queue queue;
    constexpr std::uint64_t count = 300'000;
    std::thread sender{[&] {
        for (std::uint64_t i = 0; i < count; ++i) {
            std::vector<std::byte> body(8 + i % 300, static_cast<std::byte>(i));
            std::memcpy(body.data(), &i, sizeof i);
            while (!queue.write(body)) sched_yield();
        }
    }};
    struct Checker final : Arrivals {
        std::uint64_t next = 0, wrong = 0;
        void message(NodeId, MessageKind, Bytes body) noexcept override {
            std::uint64_t number = 0;
            std::memcpy(&number, body.data(), sizeof number);
            wrong += number != next || body.size() != 8 + next % 300;
            if (body.size() > 8) wrong += body.back() != static_cast<std::byte>(next);
            ++next;
        }
        void completed(OpId) noexcept override {}
    } checker;
    while (checker.next < count) {
        if (queue.reader.read(checker, 64) == 0) sched_yield();
    }
    sender.join();
    EXPECT_EQ(checker.wrong, 0u);
}

TEST(RingDeathTest, stops_the_node_at_a_record_no_sender_writes) {
    Queue queue;
    Bodies arrived;
    ASSERT_TRUE(queue.write(body_of(100, 1)));
    wire::encode_record({4'000'000, 0}, queue.data.data());
    EXPECT_DEATH(queue.reader.read(arrived, 1), "node 3 sent a record of 4000064 bytes");
    wire::encode_record({100, 77}, queue.data.data());
    EXPECT_DEATH(queue.reader.read(arrived, 1), "node 3 sent a message of kind 77");
}

}  // namespace
}  // namespace hiroba::net::shm
