// SPDX-License-Identifier: BSD-3-Clause
// Role: segments over a provider that maps nothing and completes later; the mapped path is in
// test/conformance.
#include "gas/gas.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>
#include <vector>

namespace hiroba::gas {
namespace {

/// Two nodes' memory in one process, reached as if far away: an operation is refused now and then,
/// happens two polls after it was posted, and only then completes. One thread at a time.
class FarProvider final : public net::Provider {
public:
    explicit FarProvider(bool maps, bool lists_in_order = false)
        : limits_{"far", 65536, false, false, maps, lists_in_order} {}
    const net::Limits& limits() const noexcept override { return limits_; }
    Result<net::RegionId> allocate(std::size_t bytes) override {
        for (auto& memory : memory_) memory.assign(round_up(bytes, 8) / 8, 0);
        bytes_ = bytes;
        return net::RegionId{0};
    }
    MutableBytes local(net::RegionId) noexcept override { return {at(NodeId{0}, 0), bytes_}; }
    std::byte* mapped(NodeId node, net::RegionId) noexcept override { return at(node, 0); }
    Result<void> connect() override { return {}; }
    net::Post send(NodeId, net::MessageKind, net::Urgency,
                   std::span<const Bytes>) noexcept override {
        return net::Post::done;
    }
    net::Post put(net::OpId id, NodeId to, net::RegionId, std::uint64_t offset,
                  Bytes from) noexcept override {
        return later(id, [=, this] { std::memcpy(at(to, offset), from.data(), from.size()); });
    }
    net::Post get(net::OpId id, MutableBytes to, NodeId from, net::RegionId,
                  std::uint64_t offset) noexcept override {
        return later(id, [=, this] { std::memcpy(to.data(), at(from, offset), to.size()); });
    }
    net::Post atomic(net::OpId id, net::AtomicOp op, NodeId node, net::RegionId,
                     std::uint64_t offset, std::uint64_t operand, std::uint64_t expected,
                     std::uint64_t* old) noexcept override {
        return later(id, [=, this] {
            std::uint64_t& word = memory_[node.value][offset / 8];
            *old = word;
            if (op == net::AtomicOp::fetch_add) word += operand;
            if (op == net::AtomicOp::swap) word = operand;
            if (op == net::AtomicOp::compare_swap && word == expected) word = operand;
        });
    }
    std::size_t poll(net::Arrivals& arrivals, std::size_t) noexcept override {
        std::vector<Pending> due;
        std::vector<Pending> rest;
        for (Pending& pending : pending_) {
            (pending.polls_left-- == 0 ? due : rest).push_back(std::move(pending));
        }
        pending_ = std::move(rest);
        for (Pending& pending : due) {
            pending.act();
            arrivals.completed(pending.id);
        }
        return due.size();
    }
    void sleep(Sleeper, std::uint64_t, bool (*)(void*), void*) noexcept override { sched_yield(); }
    void wake(NodeId, Sleeper) noexcept override {}

    int posted = 0, refused = 0;
    bool refuses = true;
    std::size_t under_way_max = 0;

private:
    struct Pending {
        net::OpId id;
        std::function<void()> act;
        int polls_left;
    };
    net::Post later(net::OpId id, std::function<void()> act) {
        if (refuses && ++calls_ % 3 != 0) {
            ++refused;
            return net::Post::again;
        }
        ++posted;
        pending_.push_back({id, std::move(act), 2});
        under_way_max = std::max(under_way_max, pending_.size());
        return net::Post::posted;
    }
    std::byte* at(NodeId node, std::uint64_t offset) noexcept {
        return reinterpret_cast<std::byte*>(memory_[node.value].data()) + offset;
    }
    net::Limits limits_;
    std::size_t bytes_ = 0;
    std::vector<std::uint64_t> memory_[2];
    std::vector<Pending> pending_;
    int calls_ = 0;
};

struct Node {
    explicit Node(bool maps = false, bool lists_in_order = false)
        : provider(new FarProvider(maps, lists_in_order)),
          endpoint(net::Endpoint::over(NodeId{0}, 2, std::unique_ptr<net::Provider>(provider))),
          segment(*Segment::allocate(*endpoint, 1000)) {
        EXPECT_TRUE(endpoint->connect());
        segment.attach();
    }
    FarProvider* provider;
    std::unique_ptr<net::Endpoint> endpoint;
    Segment segment;
};

constexpr NodeId far_node{1};

TEST(Segment, returns_from_far_accesses_only_when_they_are_complete) {
    Node node;
    Segment& segment = node.segment;
    const std::vector<std::byte> sent(100, std::byte{42});
    std::vector<std::byte> got(100);
    segment.put({far_node, 900}, sent);
    segment.get({far_node, 900}, got);
    EXPECT_EQ(got, sent);

    segment.store({far_node, 8}, 40);
    EXPECT_EQ(segment.load({far_node, 8}), 40u);
    EXPECT_EQ(segment.fetch_add({far_node, 8}, 2), 40u);
    EXPECT_EQ(segment.compare_swap({far_node, 8}, 41, 7), 42u);
    EXPECT_EQ(segment.compare_swap({far_node, 8}, 42, 7), 42u);
    EXPECT_EQ(segment.swap({far_node, 8}, 8), 7u);
    EXPECT_EQ(segment.load({far_node, 8}), 8u);
    EXPECT_EQ(node.provider->posted, 9);
    EXPECT_GE(node.provider->refused, 9);  // and each was tried again
}

TEST(Segment, far_atomics_of_several_threads_add_up) {
    Node node;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i) node.segment.fetch_add({far_node, 16}, 3);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(node.segment.load({far_node, 16}), 4u * 500 * 3);
}

/// Three lists: what each finds, and what it has got.
void make_together(Node& node, std::uint64_t (&got)[3]) {
    using Access = Segment::Access;
    for (std::uint64_t i = 0; i < 3; ++i) node.segment.store({far_node, 16 * i}, 70 + i);
    std::vector<std::array<Access, 2>> accesses;
    for (std::uint64_t i = 0; i < 3; ++i) {
        accesses.push_back(
            {Access::compare_swap(node.segment, 16 * i, i == 1 ? 0 : 70 + i, 5 + i),
             Access::get(node.segment, 16 * i, std::as_writable_bytes(std::span{&got[i], 1}))});
    }
    const Segment::List lists[] = {
        {far_node, accesses[0]}, {far_node, accesses[1]}, {far_node, accesses[2]}};
    node.provider->under_way_max = 0;
    Segment::together(lists);
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(accesses[i][0].found, 70 + i);
}

TEST(Segment, lists_that_are_made_together_are_under_way_at_the_same_time) {
    for (const bool lists_in_order : {true, false}) {
        Node node{false, lists_in_order};
        node.provider->refuses = false;
        std::uint64_t got[3];
        make_together(node, got);
        EXPECT_EQ(got[0], 5u);
        EXPECT_EQ(got[1], 71u);  // the comparison failed
        EXPECT_EQ(got[2], 7u);
        EXPECT_EQ(node.provider->under_way_max, lists_in_order ? 6u : 1u);
    }
}

TEST(Segment, lists_that_find_no_room_are_made_nevertheless) {
    Node node{false, true};
    std::uint64_t got[3];
    make_together(node, got);
    EXPECT_EQ(got[2], 7u);
    EXPECT_GE(node.provider->refused, 6);
}

TEST(Segment, posts_nothing_where_the_provider_maps_peers) {
    Node node{true};
    node.segment.store({far_node, 8}, 5);
    EXPECT_EQ(node.segment.fetch_add({far_node, 8}, 1), 5u);
    const std::vector<std::byte> sent(10, std::byte{1});
    node.segment.put({far_node, 0}, sent);
    EXPECT_EQ(node.provider->posted, 0);
}

TEST(Segment, accesses_of_no_bytes_are_allowed_up_to_the_end) {
    for (const bool maps : {false, true}) {
        Node node{maps};
        node.segment.put({far_node, 1000}, {});
        node.segment.get({far_node, 1000}, {});
        EXPECT_EQ(node.provider->posted, 0);
    }
}

TEST(SegmentDeathTest, stops_at_an_access_outside_the_segment) {
    Node node;
    std::byte bytes[16];
    EXPECT_DEATH(node.segment.get({far_node, 985}, bytes), "16 bytes at offset 985 of node 1");
    EXPECT_DEATH(node.segment.put({far_node, ~0ull}, bytes), "of node 1's segment of 1000");
    EXPECT_DEATH(node.segment.get({NodeId{2}, 0}, bytes), "access to node 2 of 2");
    EXPECT_DEATH(node.segment.load({far_node, 4}), "atomic access at offset 4 of node 1");
    EXPECT_DEATH(node.segment.load({far_node, 1000}), "8 bytes at offset 1000");
}

}  // namespace
}  // namespace hiroba::gas
