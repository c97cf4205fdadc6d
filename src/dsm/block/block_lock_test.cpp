// SPDX-License-Identifier: BSD-3-Clause
// Role: the queue lock among nodes that are threads of one process, over a provider that maps all
// their memory and keeps messages in queues; each node has a service thread, as in a job.
#include "dsm/block/block_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "dsm/test_parts/wire_provider.hpp"

namespace hiroba::dsm {
namespace {

using test::Wire;
using test::WireProvider;

/// Times BLOCK_LOCK_TIMES, which the nightly form of these tests sets.
int rounds_of(int usual) {
    const char* const times = std::getenv("BLOCK_LOCK_TIMES");
    return times != nullptr ? usual * std::atoi(times) : usual;
}

SpaceShape small_shape(std::uint32_t nodes) {
    SpaceShape shape;
    shape.nodes = nodes;
    shape.stack_bytes = shape.early_bytes = shape.heap_bytes = page_bytes;
    return shape;
}

class Cluster {
public:
    Cluster(std::uint32_t nodes, unsigned hops) : wire_(nodes, 4096), map_(small_shape(nodes)) {
        for (std::uint32_t i = 0; i < nodes; ++i) {
            auto& node = nodes_.emplace_back(std::make_unique<OneNode>());
            node->endpoint = net::Endpoint::over(NodeId{i}, nodes,
                                                 std::make_unique<WireProvider>(wire_, NodeId{i}));
            auto records = gas::Segment::allocate(*node->endpoint, blocks * sizeof(BlockRecord));
            node->records = std::make_unique<gas::Segment>(std::move(*records));
            node->moved = std::make_unique<MovedBlocks>(
                *MovedBlocks::allocate(*node->endpoint, blocks), blocks, NodeId{i});
            node->lock = std::make_unique<BlockLock>(*node->endpoint, *node->records, *node->moved,
                                                     map_, hops);
        }
        for (auto& node : nodes_) {
            node->records->attach();
            node->moved->attach();
        }
    }

    // Every node takes the locks of all blocks `rounds` times and counts without an atomic.
    void run(int rounds) {
        std::vector<std::uint64_t> counts(blocks, 0);
        std::barrier start{static_cast<std::ptrdiff_t>(nodes_.size())};
        std::atomic<unsigned> running{static_cast<unsigned>(nodes_.size())};
        std::vector<std::thread> threads;
        for (auto& node : nodes_) {
            threads.emplace_back([&, lock = node->lock.get(), self = node->endpoint->self()] {
                start.arrive_and_wait();
                for (int i = 0; i < rounds; ++i) {
                    // Now and then somebody else runs while a lock is held, or just was.
                    if (i % 16 == 0) std::this_thread::yield();
                    const BlockId block = (static_cast<BlockId>(i) + self.value) % blocks;
                    LockToken token = lock->lock(block);
                    EXPECT_EQ(token.wts.value, counts[block]) << "the token was not handed on";
                    ++counts[block];
                    if (i % 7 == 0) std::this_thread::yield();
                    token.wts = token.wts.after(1);
                    token.rts = token.wts;  // (invariant 2)
                    lock->unlock(block, token);
                }
                --running;
            });
            threads.emplace_back([&, endpoint = node->endpoint.get()] {
                while (running > 0) {
                    endpoint->poll();
                    std::this_thread::yield();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        std::uint64_t total = 0;
        for (const std::uint64_t count : counts) total += count;
        EXPECT_EQ(total, nodes_.size() * static_cast<std::uint64_t>(rounds));
    }
    // Every node takes locks and extends leases in turn: whoever has the lock knows of every lease
    // that readers were given.
    void run_with_readers(int rounds) {
        std::vector<std::atomic<std::uint64_t>> given(blocks);
        std::atomic<std::uint64_t> extended{0};
        std::atomic<unsigned> running{static_cast<unsigned>(nodes_.size())};
        std::vector<std::thread> threads;
        for (auto& node : nodes_) {
            threads.emplace_back([&, lock = node->lock.get(), self = node->endpoint->self()] {
                for (int i = 0; i < rounds; ++i) {
                    const BlockId block = (static_cast<BlockId>(i / 4) + self.value) % blocks;
                    if (i % 4 != 0) {
                        extended += extend(*lock, block, given[block]);
                        continue;
                    }
                    LockToken token = lock->lock(block);
                    EXPECT_GE(token.rts.value, given[block]) << "a lease was not handed on";
                    token.wts = token.rts = token.rts.after(1);
                    lock->unlock(block, token);
                }
                --running;
            });
            threads.emplace_back([&, endpoint = node->endpoint.get()] {
                while (running > 0) {
                    endpoint->poll();
                    std::this_thread::yield();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_GT(extended, 0u);
    }
    // Node 0 keeps a lock, and forgets what a message tells it of node 1, which queues by one.
    // Returns whether node 1 has asked by itself.
    bool asks_again_behind_a_message() {
        struct : BlockLock::Keeper {
            void ask_for(NodeId holder, BlockId) noexcept override { asked = holder == NodeId{0}; }
            void wanted(NodeId, BlockId) noexcept override {}
            void wait() noexcept override {}
            std::uint32_t answers() noexcept override { return 0; }
            void await_answer(std::uint32_t, std::uint64_t) noexcept override {}
            std::atomic<bool> asked{false};
        } keeper;
        for (auto& node : nodes_) node->lock->ask_by(keeper);
        BlockLock& holder = *nodes_[0]->lock;
        holder.lock(0);
        EXPECT_TRUE(holder.keep(0));
        std::atomic<bool> got{false};
        std::thread other{[&] {
            nodes_[1]->lock->lock(0);
            got = true;
        }};
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
        while (!keeper.asked && std::chrono::steady_clock::now() < end) {
            nodes_[0]->endpoint->poll();
            std::this_thread::yield();
        }
        holder.unlock(0, holder.held_token(0));
        for (; !got; std::this_thread::yield()) nodes_[0]->endpoint->poll();
        other.join();
        return keeper.asked;
    }
    std::uint64_t forwarded() const {
        std::uint64_t sum = 0;
        for (const auto& node : nodes_) sum += node->lock->forwarded();
        return sum;
    }

private:
    static constexpr BlockId blocks = 3;
    static bool extend(BlockLock& lock, BlockId block, std::atomic<std::uint64_t>& given) {
        const auto home = lock.find_home(block, std::nullopt, nullptr, false);
        if (!home) return false;
        std::this_thread::yield();
        const Timestamp until = home->lease.rts().after(3);
        if (!lock.extend(block, *home, until)) return false;
        std::uint64_t longest = given;
        while (longest < until.value && !given.compare_exchange_weak(longest, until.value)) {
        }
        return true;
    }
    struct OneNode {
        std::unique_ptr<net::Endpoint> endpoint;
        std::unique_ptr<gas::Segment> records;
        std::unique_ptr<MovedBlocks> moved;
        std::unique_ptr<BlockLock> lock;
    };
    Wire wire_;
    AddressMap map_;
    std::vector<std::unique_ptr<OneNode>> nodes_;
};

TEST(BlockLock, excludes_and_hands_the_token_on_one_sidedly) {
    Cluster cluster{4, BlockLock::hops_usual};
    cluster.run(rounds_of(500));
}

TEST(BlockLock, a_home_that_keeps_moving_is_reached_by_messages_along_the_links) {
    Cluster cluster{4, 0};
    cluster.run(rounds_of(400));
    EXPECT_GE(cluster.forwarded(), 9u) << "three nodes fetch three blocks at least once";
}

TEST(BlockLock, who_queued_by_a_message_asks_again_for_a_lock_that_is_kept) {
    Cluster cluster{2, 0};
    EXPECT_TRUE(cluster.asks_again_behind_a_message());
    EXPECT_EQ(cluster.forwarded(), 1u);
}

TEST(BlockLock, learns_every_lease_that_readers_were_given_without_it) {
    Cluster{4, BlockLock::hops_usual}.run_with_readers(rounds_of(2400));
    Cluster{3, 0}.run_with_readers(rounds_of(800));
}

TEST(BlockLock, requests_that_turn_into_messages_half_way_still_exclude) {
    Cluster cluster{5, 1};
    cluster.run(rounds_of(300));
}

}  // namespace
}  // namespace hiroba::dsm
