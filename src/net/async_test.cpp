// SPDX-License-Identifier: BSD-3-Clause
// Role: requests over a provider that is entered by one thread at a time, has little room, and
// completes two polls later; over real processes they are tested in test/conformance.
#include "net/async.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

namespace hiroba::net {
namespace {

using offload::Mode;

/// Two nodes' memory in one process. A message comes back as if its target had sent it.
class LateProvider final : public Provider {
public:
    const Limits& limits() const noexcept override {
        static constexpr Limits limits{"late", 4096, false, false, false};
        return limits;
    }
    Result<RegionId> allocate(std::size_t bytes) override {
        for (auto& memory : memory_) memory.assign(round_up(bytes, 8) / 8, 0);
        bytes_ = bytes;
        return RegionId{0};
    }
    MutableBytes local(RegionId) noexcept override { return {at(NodeId{0}, 0), bytes_}; }
    std::byte* mapped(NodeId, RegionId) noexcept override { return nullptr; }
    Result<void> connect() override { return {}; }
    Post send(NodeId to, MessageKind kind, Urgency,
              std::span<const Bytes> parts) noexcept override {
        Inside inside{*this};
        if (pending_.size() >= room) return Post::again;
        std::vector<std::byte> body;
        for (const Bytes part : parts) body.insert(body.end(), part.begin(), part.end());
        pending_.push_back(
            {[to, kind, body](Arrivals& arrivals) { arrivals.message(to, kind, body); }, 2});
        ++calls;
        return Post::done;
    }
    Post put(OpId id, NodeId to, RegionId, std::uint64_t offset, Bytes from) noexcept override {
        return later(id, [=, this] { std::memcpy(at(to, offset), from.data(), from.size()); });
    }
    Post get(OpId id, MutableBytes to, NodeId from, RegionId,
             std::uint64_t offset) noexcept override {
        return later(id, [=, this] { std::memcpy(to.data(), at(from, offset), to.size()); });
    }
    Post atomic(OpId id, AtomicOp op, NodeId node, RegionId, std::uint64_t offset,
                std::uint64_t operand, std::uint64_t expected,
                std::uint64_t* old) noexcept override {
        return later(id, [=, this] {
            std::uint64_t& word = memory_[node.value][offset / 8];
            *old = word;
            if (op == AtomicOp::fetch_add) word += operand;
            if (op == AtomicOp::fetch_and) word &= operand;
            if (op == AtomicOp::fetch_or) word |= operand;
            if (op == AtomicOp::fetch_xor) word ^= operand;
            if (op == AtomicOp::swap) word = operand;
            if (op == AtomicOp::compare_swap && word == expected) word = operand;
        });
    }
    std::size_t post(std::span<Work> list) noexcept override {
        longest_list = std::max<std::size_t>(longest_list, list.size());
        return Provider::post(list);
    }
    std::size_t poll(Arrivals& arrivals, std::size_t) noexcept override {
        std::deque<Pending> due;
        {
            Inside inside{*this};
            std::deque<Pending> rest;
            for (Pending& pending : pending_) {
                (pending.polls_left-- == 0 ? due : rest).push_back(std::move(pending));
            }
            pending_ = std::move(rest);
        }
        for (Pending& pending : due) {
            if (lost && pending.id.value != 0) {
                arrivals.failed(pending.id, NodeId{1});
            } else {
                pending.act(arrivals);
            }
        }
        return due.size();
    }
    void sleep(Sleeper, std::uint64_t, bool (*ready)(void*), void* argument) noexcept override {
        if (!ready(argument)) sched_yield();
    }
    void wake(NodeId, Sleeper role) noexcept override {
        if (role == Sleeper::service) ++service_wakes;
    }
    std::uint64_t& word(NodeId node, std::uint64_t offset) {
        return memory_[node.value][offset / 8];
    }

    std::size_t room = 5;
    bool lost = false;  ///< whatever is pending fails instead
    std::atomic<int> calls{0}, overlaps{0}, service_wakes{0};
    std::size_t longest_list = 0;

private:
    struct Pending {
        std::function<void(Arrivals&)> act;
        int polls_left;
        OpId id{};
    };
    struct Inside {
        explicit Inside(LateProvider& provider) : provider(provider) {
            provider.overlaps += provider.entered.exchange(true);
        }
        ~Inside() { provider.entered = false; }
        LateProvider& provider;
    };
    Post later(OpId id, std::function<void()> act) {
        Inside inside{*this};
        if (pending_.size() >= room) return Post::again;
        ++calls;
        pending_.push_back({[id, act](Arrivals& arrivals) {
                                act();
                                arrivals.completed(id);
                            },
                            2, id});
        return Post::posted;
    }
    std::byte* at(NodeId node, std::uint64_t offset) noexcept {
        return reinterpret_cast<std::byte*>(memory_[node.value].data()) + offset;
    }
    std::atomic<bool> entered{false};
    std::size_t bytes_ = 0;
    std::vector<std::uint64_t> memory_[2];
    std::deque<Pending> pending_;
};

constexpr NodeId far_node{1};

/// Node 0, its requests, and 1000 bytes on each node.
struct Node {
    explicit Node(Mode mode)
        : provider(new LateProvider),
          endpoint(Endpoint::over(NodeId{0}, 2, std::unique_ptr<Provider>(provider))),
          async(std::make_unique<Async>(*endpoint, mode)),
          memory(*async->allocate(1000)) {
        EXPECT_TRUE(endpoint->connect());
        async->attach();
    }
    /// Waits for everything requested so far.
    void settle() {
        endpoint->wait_until([&] { return async->idle(); });
    }
    LateProvider* provider;
    std::unique_ptr<Endpoint> endpoint;
    std::unique_ptr<Async> async;
    Handle memory;
};

void count_up(void* data, Outcome outcome) noexcept {
    EXPECT_EQ(outcome, Outcome::done);
    static_cast<std::atomic<int>*>(data)->fetch_add(1);
}

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
        node.settle();
        EXPECT_EQ(done, 1);
        ASSERT_EQ(
            node.async->try_read({far_node, {node.memory, 900}, {to, 0}, 100, {count_up, &done}}),
            Submission::accepted);
        node.settle();
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
            node.settle();
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

/// While something is under way further requests wait and leave together; nobody is woken for that.
TEST(Async, joins_what_is_under_way_and_sends_it_as_one_list) {
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
    node.settle();
    EXPECT_EQ(done, 5);
    ASSERT_EQ(read(), Submission::accepted);  // alone again: at once
    EXPECT_EQ(node.provider->calls, 6);
    node.settle();
}

/// What joins while a poll takes away all that was under way has no other poll to hope for.
TEST(Async, sends_what_has_joined_in_the_poll_that_ends_the_rest) {
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
    node.settle();
    EXPECT_EQ(chain.done, 3);
}

TEST(Async, runs_foreign_calls_on_the_service_thread_alone) {
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
        node.settle();
        EXPECT_EQ(done, static_cast<int>(accepted));
        EXPECT_NE(by.load(), nullptr);
        EXPECT_NE(by.load(), &this_thread());
        node.endpoint->stop();
        service.join();
    }
}

TEST(Async, empties_all_of_several_queues) {
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
    node.settle();
    EXPECT_EQ(done, accepted);
    EXPECT_EQ(node.provider->longest_list, offload::Engine::batch_max);
    EXPECT_EQ(write(), Submission::accepted);
    node.settle();
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
        node.settle();
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
        node.settle();
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

TEST(Async, refuses_a_registration_beyond_the_last_and_keeps_the_others) {
    Node node{Mode::automatic};
    std::byte bytes[16] = {};
    Handle last;
    for (std::uint32_t made = 1; made < Async::handles_max; ++made) {  // one is the node's memory
        const auto handle = node.async->register_local(bytes);
        ASSERT_TRUE(handle) << made;
        last = *handle;
    }
    const auto beyond = node.async->register_local(bytes);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().kind, ErrorKind::refused);
    EXPECT_NE(beyond.error().text.find("beyond the 1024 there may be"), std::string::npos);
    EXPECT_EQ(node.async->try_write({far_node, {last, 0}, {node.memory, 0}, 8, {}}),
              Submission::accepted);
    node.settle();
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
