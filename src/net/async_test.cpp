// SPDX-License-Identifier: BSD-3-Clause
// Role: requests over a late provider; over real processes they are tested in test/conformance.
#include "net/async.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "net/test_parts/late_provider.hpp"

namespace hiroba::net {
namespace {

using offload::Mode;

constexpr Mode every_mode[] = {Mode::automatic, Mode::always, Mode::never};

TEST(Async, completes_reads_and_writes_in_every_mode) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        std::atomic<int> done{0};
        std::vector<std::byte> mine(100, std::byte{42}), got(100);
        const Handle from = *node.async->register_local(mine);
        const Handle to = *node.async->register_local(got);
        ASSERT_EQ(node.async->try_write(
                      {far_node, {from, 0}, {node.memory, 900}, 100, {count_up, &done}}),
                  Submission::accepted);
        EXPECT_EQ(done, 0);  // not before it has happened
        node.drain();
        EXPECT_EQ(done, 1);
        ASSERT_EQ(
            node.async->try_read({far_node, {node.memory, 900}, {to, 0}, 100, {count_up, &done}}),
            Submission::accepted);
        node.drain();
        EXPECT_EQ(done, 2);
        EXPECT_EQ(got, mine);
    }
}

TEST(Async, carries_out_atomics_of_four_and_eight_bytes_in_every_mode) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        alignas(8) std::byte memory[8];
        const LocalAddress old{*node.async->register_local(memory), 0};
        const auto apply = [&](AtomicOp op, std::uint32_t bytes, std::uint64_t offset,
                               std::uint64_t operand, std::uint64_t expected = 0) {
            std::memset(memory, 0xee, sizeof memory);
            EXPECT_EQ(node.async->try_atomic(
                          {far_node, {node.memory, offset}, op, bytes, operand, expected, old, {}}),
                      Submission::accepted);
            node.drain();
            std::uint64_t found = 0;
            std::memcpy(&found, memory, bytes);
            return found;
        };
        std::uint64_t& word = node.provider->word(far_node, 16);
        word = 0x0000'0001'ffff'ffff;
        EXPECT_EQ(apply(AtomicOp::fetch_add, 4, 16, 2), 0xffff'ffffu);
        EXPECT_EQ(word, 0x0000'0001'0000'0001u);  // no carry into the neighbour
        EXPECT_EQ(apply(AtomicOp::fetch_add, 4, 20, 5), 1u);
        EXPECT_EQ(apply(AtomicOp::compare_swap, 4, 20, 9, 5), 6u);
        EXPECT_EQ(apply(AtomicOp::compare_swap, 4, 20, 9, 6), 6u);
        EXPECT_EQ(apply(AtomicOp::swap, 4, 16, 3), 1u);
        EXPECT_EQ(apply(AtomicOp::fetch_or, 4, 16, 4), 3u);
        EXPECT_EQ(apply(AtomicOp::fetch_and, 4, 16, 6), 7u);
        EXPECT_EQ(apply(AtomicOp::fetch_xor, 4, 20, 1), 9u);
        EXPECT_EQ(word, 0x0000'0008'0000'0006u);
        EXPECT_EQ(apply(AtomicOp::swap, 8, 16, 1), 0x0000'0008'0000'0006u);
        EXPECT_EQ(apply(AtomicOp::compare_swap, 8, 16, 2, 1), 1u);
        EXPECT_EQ(apply(AtomicOp::fetch_add, 8, 16, 3), 2u);
        EXPECT_EQ(word, 5u);
    }
}

TEST(Async, delivers_short_and_medium_messages) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        struct Got {
            std::vector<std::uint64_t> arguments;
            std::vector<std::byte> payload;
            NodeId from;
        } got;
        node.async->on(
            ActiveId{7},
            [](void* context, NodeId from, std::span<const std::uint64_t> arguments,
               Bytes payload) noexcept {
                *static_cast<Got*>(context) = {
                    {arguments.begin(), arguments.end()}, {payload.begin(), payload.end()}, from};
            },
            &got);
        const std::uint64_t arguments[] = {1, 2, 3, 4, 5, 6};
        ASSERT_EQ(node.async->try_message({.target = far_node,
                                           .id = {7},
                                           .arguments = arguments,
                                           .payload = {},
                                           .on_complete = {}}),
                  Submission::accepted);
        node.endpoint->wait_until([&] { return got.arguments.size() == 6; });
        EXPECT_EQ(got.arguments[5], 6u);
        EXPECT_TRUE(got.payload.empty());
        EXPECT_EQ(got.from, far_node);

        std::vector<std::byte> payload(3000, std::byte{9});
        std::atomic<int> left{0};
        ASSERT_EQ(node.async->try_message({.target = far_node,
                                           .id = {7},
                                           .arguments = {},
                                           .payload = {*node.async->register_local(payload), 0},
                                           .payload_bytes = payload.size(),
                                           .on_complete = {count_up, &left}}),
                  Submission::accepted);
        node.endpoint->wait_until([&] { return !got.payload.empty(); });
        EXPECT_EQ(got.payload, payload);
        EXPECT_EQ(left, 1);
    }
}

TEST(Async, says_again_when_its_queue_is_full_and_hands_over_lists) {
    Node node{Mode::always};
    std::atomic<int> done{0};
    int accepted = 0;
    const auto write = [&] {
        return node.async->try_write(
            {far_node, {node.memory, 0}, {node.memory, 8}, 8, {count_up, &done}});
    };
    while (write() == Submission::accepted) ++accepted;
    EXPECT_EQ(accepted, static_cast<int>(offload::Engine::queue_capacity));
    EXPECT_EQ(write(), Submission::again);
    EXPECT_EQ(node.provider->calls, 0);
    node.drain();
    EXPECT_EQ(done, accepted);
    EXPECT_EQ(node.provider->longest_list, offload::Engine::batch_max);
    EXPECT_EQ(write(), Submission::accepted);
    node.drain();
}

TEST(Async, completes_what_four_threads_request_and_enters_the_provider_one_at_a_time) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        constexpr int count = 2'000, threads_count = 4;
        std::thread service{[&] { node.endpoint->serve(); }};
        std::atomic<int> done{0};
        std::vector<std::thread> threads;
        for (int thread = 0; thread < threads_count; ++thread) {
            threads.emplace_back([&, thread] {
                alignas(8) std::byte memory[8];
                const LocalAddress old{*node.async->register_local(memory), 0};
                std::atomic<int> mine{0};
                for (int i = 0; i < count; ++i) {
                    const std::uint32_t bytes = i % 2 == 0 ? 8 : 4;
                    const AtomicParams params{far_node,
                                              {node.memory, bytes == 8 ? 16u : 24u},
                                              AtomicOp::fetch_add,
                                              bytes,
                                              3,
                                              0,
                                              old,
                                              {count_up, &mine}};
                    while (node.async->try_atomic(params) == Submission::again) sched_yield();
                    // Some wait inside, some leave all progress to the service thread.
                    if (thread % 2 == 0) {
                        node.endpoint->wait_until([&] { return mine == i + 1; });
                    } else {
                        while (mine != i + 1) sched_yield();
                    }
                }
                done += mine;
            });
        }
        for (std::thread& thread : threads) thread.join();
        node.endpoint->stop();
        service.join();
        EXPECT_EQ(done, count * threads_count);
        EXPECT_EQ(node.provider->word(far_node, 16), 3u * count / 2 * threads_count);
        EXPECT_EQ(node.provider->word(far_node, 24), 3u * count / 2 * threads_count);
        EXPECT_EQ(node.provider->overlaps, 0);
    }
}

TEST(Async, tells_callbacks_of_a_lost_peer_and_brings_nothing) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        node.provider->lost = true;
        std::atomic<int> lost{0};
        const net::Callback callback{[](void* data, Outcome outcome) noexcept {
                                         EXPECT_EQ(outcome, Outcome::peer_lost);
                                         static_cast<std::atomic<int>*>(data)->fetch_add(1);
                                     },
                                     &lost};
        alignas(8) std::byte memory[8];
        std::memset(memory, 0x5a, sizeof memory);
        const LocalAddress old{*node.async->register_local(memory), 0};
        EXPECT_EQ(node.async->try_atomic(
                      {far_node, {node.memory, 8}, AtomicOp::swap, 4, 1, 0, old, callback}),
                  Submission::accepted);
        EXPECT_EQ(node.async->try_read({far_node, {node.memory, 0}, old, 8, callback}),
                  Submission::accepted);
        node.drain();
        EXPECT_EQ(lost, 2);
        EXPECT_EQ(memory[0], std::byte{0x5a});
    }
}

/// Requests the next write from the callback of the last.
struct Chain {
    Node& node;
    int left = 0;
    int completed = 0;
    static void next(void* data, Outcome) noexcept {
        auto& chain = *static_cast<Chain*>(data);
        ++chain.completed;
        if (chain.left-- == 0) return;
        const Submission made = chain.node.async->try_write(
            {far_node, {chain.node.memory, 0}, {chain.node.memory, 8}, 8, {next, data}});
        EXPECT_EQ(made, Submission::accepted);
    }
};

TEST(Async, lets_callbacks_make_requests) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        Chain chain{node, 500};
        Chain::next(&chain, Outcome::done);
        node.drain();
        EXPECT_EQ(chain.completed, 501);
    }
}

TEST(Async, does_not_nest_callbacks_and_refuses_to_collect_them_without_end) {
    struct Depth {
        int now = 0, most = 0, left = 1000;
        static void enter(void* data, Outcome) noexcept {
            auto& depth = *static_cast<Depth*>(data);
            depth.most = std::max(depth.most, ++depth.now);
            if (depth.left-- > 0)
                offload::run_callback(this_thread(), {enter, data}, Outcome::done);
            --depth.now;
        }
    } depth;
    offload::run_callback(this_thread(), {Depth::enter, &depth}, Outcome::done);
    EXPECT_EQ(depth.left, -1);
    EXPECT_EQ(depth.most, 1);

    struct Collector {
        int collected = 0;
        static void collect(void* data, Outcome) noexcept {
            while (offload::may_run_callback(this_thread())) {
                offload::run_callback(this_thread(),
                                      {[](void* counter, Outcome) noexcept {
                                           ++static_cast<Collector*>(counter)->collected;
                                       },
                                       data},
                                      Outcome::done);
            }
        }
    } collector;
    offload::run_callback(this_thread(), {Collector::collect, &collector}, Outcome::done);
    EXPECT_EQ(collector.collected, 32);
}

/// The request is refused, `check` says why, and nothing has reached the provider.
template <class Params>
void expect_refused(Node& node, Submission made, const Params& params, const char* words) {
    EXPECT_EQ(made, Submission::refused) << words;
    const auto checked = node.async->check(params);
    ASSERT_FALSE(checked) << words;
    EXPECT_EQ(checked.error().kind, ErrorKind::refused);
    EXPECT_NE(checked.error().text.find(words), std::string::npos) << checked.error().text;
    EXPECT_EQ(node.provider->calls, 0);
    EXPECT_TRUE(node.async->idle());
}

TEST(Async, refuses_wrong_reads_and_writes_before_anything_is_sent) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        std::byte bytes[16];
        const Handle mine = *node.async->register_local(bytes);
        const Handle gone = *node.async->register_local(bytes);
        node.async->deregister(gone);
        const auto refuse = [&](NodeId peer, RemoteAddress far, LocalAddress near,
                                std::size_t count, const char* words) {
            const ReadParams read{peer, far, near, count, {}};
            expect_refused(node, node.async->try_read(read), read, words);
            const WriteParams write{peer, near, far, count, {}};
            expect_refused(node, node.async->try_write(write), write, words);
        };
        refuse(NodeId{2}, {node.memory, 0}, {mine, 0}, 8, "node 2 of a job of 2");
        refuse(far_node, {Handle{77}, 0}, {mine, 0}, 8, "remote handle 77 is not registered");
        refuse(far_node, {Handle{99'999}, 0}, {mine, 0}, 8, "remote handle 99999");
        refuse(far_node, {mine, 0}, {mine, 0}, 8, "is of local memory alone");
        refuse(far_node, {node.memory, 993}, {mine, 0}, 8, "993 + 8 of handle 0, which has 1000");
        refuse(far_node, {node.memory, ~0ull}, {mine, 0}, 8, "which has 1000");
        refuse(far_node, {node.memory, 0}, {Handle{78}, 0}, 8, "local handle 78");
        refuse(far_node, {node.memory, 0}, {gone, 0}, 8, "is not registered");
        refuse(far_node, {node.memory, 0}, {mine, 9}, 8, "bytes 9 + 8 of the local handle 1");
        refuse(far_node, {node.memory, 0}, {mine, 0}, ~0ull, "which has");
    }
}

TEST(Async, refuses_wrong_atomics_before_anything_is_sent) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        const auto refuse = [&](NodeId peer, std::uint64_t offset, std::uint32_t bytes,
                                std::uint64_t old_offset, const char* words,
                                AtomicOp op = AtomicOp::swap) {
            const AtomicParams params{peer, {node.memory, offset},     op, bytes, 1,
                                      0,    {node.memory, old_offset}, {}};
            expect_refused(node, node.async->try_atomic(params), params, words);
        };
        refuse(far_node, 4, 8, 0, "8 bytes at offset 4, which is no multiple");
        refuse(far_node, 2, 4, 0, "4 bytes at offset 2, which is no multiple");
        refuse(far_node, 0, 2, 0, "an atomic of 2 bytes");
        refuse(far_node, 1000, 8, 0, "1000 + 8 of handle 0");
        refuse(NodeId{9}, 0, 8, 0, "node 9 of a job of 2");
        refuse(far_node, 0, 8, 996, "996 + 8 of the local handle 0 of `old`");
        refuse(far_node, 0, 8, 0, "operation 99 does not exist", static_cast<AtomicOp>(99));
    }
}

TEST(Async, refuses_wrong_messages_before_anything_is_sent) {
    for (const Mode mode : every_mode) {
        Node node{mode};
        const std::uint64_t arguments[7] = {};
        const auto refuse = [&](NodeId peer, std::uint8_t id, std::size_t count,
                                LocalAddress payload, std::size_t bytes, const char* words) {
            const MessageParams params{.target = peer,
                                       .id = {id},
                                       .arguments = std::span(arguments).first(count),
                                       .payload = payload,
                                       .payload_bytes = bytes,
                                       .on_complete = {}};
            expect_refused(node, node.async->try_message(params), params, words);
        };
        refuse(NodeId{2}, 0, 0, {}, 0, "node 2 of a job of 2");
        refuse(far_node, 64, 0, {}, 0, "active message 64; there are 64");
        refuse(far_node, 0, 7, {}, 0, "7 arguments; at most 6");
        refuse(far_node, 0, 0, {node.memory, 0}, 4041, "payload of 4041 bytes; at most 4040");
        refuse(far_node, 0, 0, {Handle{5}, 0}, 8, "local handle 5 of `payload`");
    }
}

TEST(Async, keeps_thousands_of_registrations_and_takes_none_that_is_gone_for_another) {
    Node node{Mode::automatic};
    constexpr std::size_t count = 5000;
    std::vector<std::byte> bytes(count);
    std::vector<Handle> handles;
    for (std::size_t i = 0; i < count; ++i) {
        const auto handle = node.async->register_local({&bytes[i], 1});
        ASSERT_TRUE(handle) << i;
        handles.push_back(*handle);
    }
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(node.async->local(handles[i]).data(), &bytes[i]) << i;
    for (const Handle gone : handles) node.async->deregister(gone);
    node.async->deregister(handles[7]);  // passed over
    std::set<std::uint32_t> seen;
    for (const Handle gone : handles) seen.insert(gone.value);
    for (std::size_t i = 0; i < 10 * count; ++i) {
        const auto handle = node.async->register_local(bytes);
        ASSERT_TRUE(handle) << i;
        ASSERT_TRUE(seen.insert(handle->value).second) << handle->value << " comes again";
        node.async->deregister(*handle);
    }
    EXPECT_TRUE(node.async->local(handles[4000]).empty());
    EXPECT_EQ(node.async->try_write({far_node, {handles[4000], 0}, {node.memory, 0}, 1, {}}),
              Submission::refused);
    node.drain();
}

TEST(AsyncDeathTest, stops_at_an_active_message_that_no_node_writes) {
    Node node{Mode::never};
    const std::uint64_t word = 1ull << 8;  // says one argument, brings none
    const Bytes parts[] = {std::as_bytes(std::span(&word, 1))};
    const auto receive = [&] {
        node.endpoint->send(far_node, MessageKind::active, Urgency::when_polled, parts);
        node.endpoint->wait_until([] { return false; });
    };
    EXPECT_DEATH(receive(), "node 1 sent an active message of 8 bytes that no node writes");
}

}  // namespace
}  // namespace hiroba::net
