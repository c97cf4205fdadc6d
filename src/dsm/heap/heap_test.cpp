// SPDX-License-Identifier: BSD-3-Clause
// Role: the heaps of two nodes in one process, over a provider that keeps messages in a queue and a
// shared memory that only writes down when it is told to release, learn and acquire.
#include "dsm/heap/heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/thread_context.hpp"
#include "base/turns.hpp"
#include "dsm/test_parts/idle_memory.hpp"
#include "dsm/test_parts/wire_provider.hpp"
#include "gas/gas.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {
namespace {

using test::Wire;
using test::WireProvider;

constexpr std::uint32_t nodes = 2;

/// Writes down what it is asked to do; its news are the number of its releases so far.
class LoggingMemory final : public test::IdleMemory {
public:
    using IdleMemory::IdleMemory;
    std::string log;
    std::size_t news_bytes = 8;
    bool keeps = false;  ///< says of what it discards that it could not
    const std::atomic<std::size_t>* messages = nullptr;  ///< sent so far by all nodes
    std::size_t messages_before_discard = 0;
    std::vector<AddressRange> discarded;

    void release(Others) noexcept override {
        ++releases_;
        log += "release ";
    }
    void acquire(Others) noexcept override { log += "acquire "; }
    std::size_t news_for_anyone(MutableBytes out) noexcept override {
        std::memset(out.data(), 0, news_bytes);
        std::memcpy(out.data(), &releases_, sizeof releases_);
        log += "news ";
        return news_bytes;
    }
    std::size_t news_bytes_max() const noexcept override { return news_bytes; }
    void learn(NodeId from, Bytes news) noexcept override {
        std::uint32_t releases = 0;
        std::memcpy(&releases, news.data(), sizeof releases);
        log += "learn" + std::to_string(releases) + "of" + std::to_string(from.value) + " ";
    }
    bool discard(std::span<const AddressRange> ranges) noexcept override {
        for (const AddressRange& each : ranges) discarded.push_back(each);
        messages_before_discard = *messages;
        log += "discard" + std::to_string(ranges.size()) + " ";
        return !keeps;
    }
    void discarded_everywhere() noexcept override { log += "everywhere "; }

private:
    std::uint32_t releases_ = 0;
};

struct TestNode {
    TestNode(Wire& wire, const AddressMap& map, NodeId self) : memory(map) {
        endpoint = net::Endpoint::over(self, nodes, std::make_unique<WireProvider>(wire, self));
        auto made = Heap::create(*endpoint, map, memory);
        EXPECT_TRUE(made) << made.error().text;
        heap = std::move(*made);
        memory.messages = &wire.messages;
    }
    void* take(std::size_t bytes) {
        bool zeroed = false;
        return heap->allocate(bytes, 16, &zeroed);
    }
    void poll_all() {
        while (endpoint->poll()) {
        }
    }
    std::unique_ptr<net::Endpoint> endpoint;
    LoggingMemory memory;
    std::unique_ptr<Heap> heap;
};

struct TwoNodes {
    explicit TwoNodes(std::size_t message_bytes_max = 65536)
        : wire(nodes, message_bytes_max),
          map({.nodes = nodes, .heap_bytes = std::size_t{64} << 20}) {
        for (std::uint32_t rank = 0; rank < nodes; ++rank) {
            node.push_back(std::make_unique<TestNode>(wire, map, NodeId{rank}));
        }
        for (auto& each : node) {
            EXPECT_TRUE(each->endpoint->connect());
            each->heap->attach();
        }
    }
    TestNode& operator[](std::size_t rank) { return *node[rank]; }

    Wire wire;
    AddressMap map;
    std::vector<std::unique_ptr<TestNode>> node;
};

TEST(Heap, each_node_takes_from_its_own_arena) {
    TwoNodes node;
    for (std::uint32_t rank = 0; rank < nodes; ++rank) {
        const auto at = reinterpret_cast<std::uintptr_t>(node[rank].take(100));
        EXPECT_TRUE(node.map.heap_arena(NodeId{rank}).contains(at));
        EXPECT_TRUE(node[1 - rank].heap->owns(reinterpret_cast<void*>(at)));
    }
    EXPECT_FALSE(node[0].heap->owns(&node));
}

TEST(Heap, every_node_knows_the_size_of_every_block) {
    TwoNodes node;
    for (const std::size_t bytes : {1, 100, 3000, 5000, 1'000'000}) {
        void* const block = node[1].take(bytes);
        EXPECT_GE(node[1].heap->usable_bytes(block), bytes);
        EXPECT_EQ(node[0].heap->usable_bytes(block), node[1].heap->usable_bytes(block));
    }
}

TEST(Heap, a_remote_free_is_reusable_only_after_its_news_were_acquired) {
    TwoNodes node;
    void* const block = node[0].take(8 * page_bytes);
    node[1].heap->deallocate(block);
    EXPECT_EQ(node.wire.messages, 0u);
    node[1].heap->flush_remote_frees();
    EXPECT_EQ(node[1].memory.log, "release news ");

    node[0].heap->accept_remote_frees();
    EXPECT_EQ(node[0].memory.log, "");
    node[0].poll_all();
    EXPECT_NE(node[0].take(8 * page_bytes), block);
    node[0].heap->accept_remote_frees();
    EXPECT_EQ(node[0].memory.log, "learn1of1 ");
    EXPECT_NE(node[0].take(8 * page_bytes), block);
    node[0].heap->accept_remote_frees();
    EXPECT_EQ(node[0].memory.log, "learn1of1 acquire ");
    EXPECT_EQ(node[0].take(8 * page_bytes), block);
}

TEST(Heap, of_several_batches_of_a_node_the_last_news_are_learned) {
    TwoNodes node;
    void* const first = node[0].take(100);
    void* const second = node[0].take(100);
    for (void* const block : {first, second}) {
        node[1].heap->deallocate(block);
        node[1].heap->flush_remote_frees();
    }
    node[0].poll_all();
    node[0].heap->accept_remote_frees();
    node[0].heap->accept_remote_frees();
    EXPECT_EQ(node[0].memory.log, "learn2of1 acquire ");
    EXPECT_EQ(node[0].take(100), first);
    EXPECT_EQ(node[0].take(100), second);
}

TEST(Heap, a_synchronization_without_remote_frees_asks_the_memory_for_nothing) {
    TwoNodes node;
    node[0].heap->deallocate(node[0].take(100));
    node[0].heap->flush_remote_frees();
    node[0].heap->accept_remote_frees();
    EXPECT_EQ(node[0].memory.log, "");
    EXPECT_EQ(node.wire.messages, 0u);
}

TEST(Heap, more_remote_frees_than_a_message_holds_all_come_home) {
    TwoNodes node{256};
    const std::size_t free_before = node[0].heap->bytes_free();
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(node[0].take(page_bytes));
    EXPECT_EQ(node[0].heap->bytes_free(), free_before - 1000 * page_bytes);
    for (void* const block : blocks) node[1].heap->deallocate(block);
    node[1].heap->flush_remote_frees();
    EXPECT_GT(node.wire.messages, 1000u * 8 / 256);
    EXPECT_EQ(node[1].memory.log, "release news ");
    node[0].poll_all();
    node[0].heap->accept_remote_frees();
    node[0].heap->accept_remote_frees();
    EXPECT_EQ(node[0].heap->bytes_free(), free_before);
}

constexpr std::size_t much = std::size_t{33} << 20;  // more than a node keeps

TEST(Heap, freed_pages_are_free_again_when_every_node_has_discarded_them) {
    TwoNodes node;
    const std::size_t free_before = node[0].heap->bytes_free();
    void* const block = node[0].take(much);
    const std::size_t taken = free_before - node[0].heap->bytes_free();
    EXPECT_GE(taken, much);
    node[0].heap->deallocate(block);
    EXPECT_EQ(node[0].memory.log, "discard1 ");
    EXPECT_EQ(node[0].heap->bytes_free(), free_before - taken) << "somebody might use them";
    ASSERT_EQ(node[0].memory.discarded.size(), 1u);
    EXPECT_EQ(node[0].memory.discarded[0].address, reinterpret_cast<std::uintptr_t>(block));
    EXPECT_EQ(node[0].memory.discarded[0].bytes, taken);

    EXPECT_FALSE(node[1].heap->has_freed_pages());
    node[1].poll_all();
    EXPECT_TRUE(node[1].heap->has_freed_pages());
    EXPECT_EQ(node[1].memory.log, "") << "a handler may not do it";
    node[1].heap->accept_remote_frees();
    EXPECT_EQ(node[1].memory.log, "discard1 ");
    EXPECT_FALSE(node[1].heap->has_freed_pages());

    node[0].poll_all();
    EXPECT_EQ(node[0].heap->bytes_free(), free_before - taken);
    node[0].heap->return_freed_pages();
    EXPECT_EQ(node[0].heap->bytes_free(), free_before);
    EXPECT_EQ(node[0].memory.log, "discard1 everywhere ");
    node[1].poll_all();
    EXPECT_EQ(node[1].memory.log, "discard1 everywhere ");

    bool zeroed = false;
    EXPECT_EQ(node[0].heap->allocate(much, 16, &zeroed), block);
    EXPECT_TRUE(zeroed);
}

/// The calling thread's clock, which stands still.
class StillClock final : public Turns {
public:
    StillClock() { this_thread().turns = this; }
    ~StillClock() override { this_thread().turns = nullptr; }
    void pass() noexcept override {}
    std::uint64_t now_ns() noexcept override { return now_; }
    void advance_seconds(double seconds) { now_ += static_cast<std::uint64_t>(seconds * 1e9); }

private:
    std::uint64_t now_ = 1;
};

TEST(Heap, freed_pages_that_are_taken_again_stay_until_they_are_not) {
    StillClock clock;
    TwoNodes node;
    const auto use = [&] {
        void* const block = node[0].take(much);
        ASSERT_NE(block, nullptr);
        node[0].heap->deallocate(block);
    };
    const auto rounds = [&] { return node[0].memory.discarded.size(); };
    const auto end_round = [&] {
        node[1].poll_all();
        node[1].heap->return_freed_pages();
        node[0].poll_all();
        node[0].heap->return_freed_pages();
    };
    use();
    EXPECT_EQ(rounds(), 1u);
    end_round();
    use();
    EXPECT_EQ(rounds(), 1u) << "all of the round before was taken again";
    for (int time = 0; time < 5; ++time) {
        clock.advance_seconds(0.9);
        use();
        node[0].heap->return_freed_pages();
    }
    EXPECT_EQ(rounds(), 1u);

    clock.advance_seconds(1.1);
    EXPECT_TRUE(node[0].heap->has_freed_pages());
    node[0].heap->return_freed_pages();
    EXPECT_FALSE(node[0].heap->has_freed_pages()) << "an idle node would never sleep";
    EXPECT_EQ(rounds(), 1u) << "it was used in this second";
    clock.advance_seconds(1.1);
    node[0].heap->return_freed_pages();
    EXPECT_EQ(rounds(), 2u);
    end_round();
    node[0].heap->deallocate(node[0].take(much / 4));
    EXPECT_EQ(rounds(), 2u) << "as much as at the beginning may stay";
}

TEST(Heap, freed_pages_that_some_node_keeps_are_not_taken_for_zero) {
    TwoNodes node;
    node[1].memory.keeps = true;
    void* const block = node[0].take(much);
    node[0].heap->deallocate(block);
    node[1].poll_all();
    node[1].heap->return_freed_pages();
    node[0].poll_all();
    node[0].heap->accept_remote_frees();
    node[1].poll_all();
    bool zeroed = true;
    EXPECT_EQ(node[0].heap->allocate(much, 16, &zeroed), block);
    EXPECT_FALSE(zeroed);
}

// What the owner has written there need not be merged yet: a release that found another node's
// zeros under it would report a race (invariant 13).
TEST(Heap, the_owner_discards_freed_pages_before_anybody_else) {
    TwoNodes node;
    node[0].heap->deallocate(node[0].take(much));
    EXPECT_EQ(node[0].memory.log, "discard1 ");
    EXPECT_EQ(node[0].memory.messages_before_discard, 0u);
    EXPECT_EQ(node.wire.messages, 1u) << "the other node is asked";
}

TEST(Heap, what_the_owner_keeps_of_freed_pages_nobody_else_is_asked_for) {
    TwoNodes node;
    node[0].memory.keeps = true;
    void* const block = node[0].take(much);
    node[0].heap->deallocate(block);
    EXPECT_EQ(node[0].memory.log, "discard1 everywhere ");
    EXPECT_EQ(node.wire.messages, 0u);
    EXPECT_FALSE(node[0].heap->has_freed_pages()) << "the same pages over and over";
    bool zeroed = true;
    EXPECT_EQ(node[0].heap->allocate(much, 16, &zeroed), block);
    EXPECT_FALSE(zeroed);
}

TEST(Heap, one_round_of_freed_pages_is_under_way_at_a_time) {
    TwoNodes node;
    void* const first = node[0].take(much / 2);
    void* const fence = node[0].take(8 * page_bytes);
    void* const second = node[0].take(much);
    node[0].heap->deallocate(second);
    node[0].heap->deallocate(first);
    node[0].heap->deallocate(fence);
    EXPECT_EQ(node[0].memory.log, "discard1 ");
    EXPECT_EQ(node[0].take(much / 2), first) << "what is in no round can be used at once";
}

TEST(Heap, pieces_too_small_to_give_back_are_looked_for_once) {
    TwoNodes node;
    std::vector<void*> blocks;
    while (void* const block = node[0].take(4 * page_bytes)) blocks.push_back(block);
    // Three of four: runs of 12 pages, 48 MiB in all.
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % 4 != 3) node[0].heap->deallocate(blocks[i]);
    }
    EXPECT_EQ(node[0].memory.log, "");
    EXPECT_FALSE(node[0].heap->has_freed_pages()) << "an idle node would never sleep";
}

TEST(HeapDeath, freeing_twice_or_what_was_never_allocated_names_the_address) {
    TwoNodes node;
    void* const block = node[0].take(100);
    node[0].heap->deallocate(block);
    char text[64];
    std::snprintf(text, sizeof text, "free\\(\\): %p is not an allocated block", block);
    EXPECT_DEATH(node[0].heap->deallocate(block), text);
    EXPECT_DEATH(node[0].heap->deallocate(&node), "is not an allocated block");

    void* const twice = node[0].take(200);
    node[1].heap->deallocate(twice);
    node[1].heap->deallocate(twice);
    node[1].heap->flush_remote_frees();
    node[0].poll_all();
    node[0].heap->accept_remote_frees();
    EXPECT_DEATH(node[0].heap->accept_remote_frees(), "freed on node 1, is not an allocated block");
}

}  // namespace
}  // namespace hiroba::dsm
