// SPDX-License-Identifier: BSD-3-Clause
// Role: the queue lock among nodes that are threads of one process, over a provider that maps all
// their memory and keeps messages in queues; each node has a service thread, as in a job.
#include "dsm/engine/block_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hiroba::dsm {
namespace {

struct Wire {
    struct Message {
        NodeId from;
        net::MessageKind kind;
        std::vector<std::byte> body;
    };
    struct Inbox {
        std::mutex mutex;
        std::deque<Message> messages;
    };
    explicit Wire(std::uint32_t nodes) : inboxes(nodes), memory(nodes) {}
    std::vector<Inbox> inboxes;
    std::vector<std::vector<std::uint64_t>> memory;
};

class WireProvider final : public net::Provider {
public:
    WireProvider(Wire& wire, NodeId self) : wire_(wire), self_(self) {}
    const net::Limits& limits() const noexcept override { return limits_; }
    Result<net::RegionId> allocate(std::size_t bytes) override {
        wire_.memory[self_.value].assign(bytes / 8, 0);
        return net::RegionId{};
    }
    MutableBytes local(net::RegionId region) noexcept override {
        return {mapped(self_, region), wire_.memory[self_.value].size() * 8};
    }
    std::byte* mapped(NodeId node, net::RegionId) noexcept override {
        return reinterpret_cast<std::byte*>(wire_.memory[node.value].data());
    }
    Result<void> connect() override { return {}; }
    net::Post send(NodeId to, net::MessageKind kind, net::Urgency,
                   std::span<const Bytes> parts) noexcept override {
        Wire::Message message{self_, kind, {}};
        for (const Bytes part : parts) {
            message.body.insert(message.body.end(), part.begin(), part.end());
        }
        const std::scoped_lock guard{wire_.inboxes[to.value].mutex};
        wire_.inboxes[to.value].messages.push_back(std::move(message));
        return net::Post::done;
    }
    net::Post put(net::OpId, NodeId, net::RegionId, std::uint64_t, Bytes) noexcept override {
        return net::Post::again;
    }
    net::Post get(net::OpId, MutableBytes, NodeId, net::RegionId, std::uint64_t) noexcept override {
        return net::Post::again;
    }
    net::Post atomic(net::OpId, net::AtomicOp, NodeId, net::RegionId, std::uint64_t, std::uint64_t,
                     std::uint64_t, std::uint64_t*) noexcept override {
        return net::Post::again;
    }
    std::size_t poll(net::Arrivals& arrivals, std::size_t) noexcept override {
        Wire::Message message;
        {
            const std::scoped_lock guard{wire_.inboxes[self_.value].mutex};
            if (wire_.inboxes[self_.value].messages.empty()) return 0;
            message = std::move(wire_.inboxes[self_.value].messages.front());
            wire_.inboxes[self_.value].messages.pop_front();
        }
        arrivals.message(message.from, message.kind, message.body);
        return 1;
    }
    void sleep(Sleeper, std::uint64_t, bool (*)(void*), void*) noexcept override {
        std::this_thread::yield();
    }
    void wake(NodeId, Sleeper) noexcept override {}

private:
    Wire& wire_;
    NodeId self_;
    net::Limits limits_{"wire", 4096, true, true, true};
};

SpaceShape small_shape(std::uint32_t nodes) {
    SpaceShape shape;
    shape.nodes = nodes;
    shape.stack_bytes = shape.early_bytes = shape.heap_bytes = page_bytes;
    return shape;
}

class Cluster {
public:
    Cluster(std::uint32_t nodes, unsigned hops) : wire_(nodes), map_(small_shape(nodes)) {
        for (std::uint32_t i = 0; i < nodes; ++i) {
            auto& node = nodes_.emplace_back(std::make_unique<OneNode>());
            node->endpoint = net::Endpoint::over(NodeId{i}, nodes,
                                                 std::make_unique<WireProvider>(wire_, NodeId{i}));
            auto records = gas::Segment::allocate(*node->endpoint, blocks * sizeof(BlockRecord));
            node->records = std::make_unique<gas::Segment>(std::move(*records));
            node->lock = std::make_unique<BlockLock>(*node->endpoint, *node->records, map_, hops);
        }
        for (auto& node : nodes_) node->records->attach();
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
                    if (i % 3 == 0) token.home = self;
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
    std::uint64_t forwarded() const {
        std::uint64_t sum = 0;
        for (const auto& node : nodes_) sum += node->lock->forwarded();
        return sum;
    }

private:
    static constexpr BlockId blocks = 3;
    struct OneNode {
        std::unique_ptr<net::Endpoint> endpoint;
        std::unique_ptr<gas::Segment> records;
        std::unique_ptr<BlockLock> lock;
    };
    Wire wire_;
    AddressMap map_;
    std::vector<std::unique_ptr<OneNode>> nodes_;
};

TEST(BlockLock, excludes_and_hands_the_token_on_one_sidedly) {
    Cluster cluster{4, BlockLock::hops_usual};
    cluster.run(1500);
}

TEST(BlockLock, a_home_that_keeps_moving_is_reached_by_messages_along_the_links) {
    Cluster cluster{4, 0};
    cluster.run(800);
    EXPECT_GE(cluster.forwarded(), 9u) << "three nodes fetch three blocks at least once";
}

TEST(BlockLock, requests_that_turn_into_messages_half_way_still_exclude) {
    Cluster cluster{5, 1};
    cluster.run(800);
}

}  // namespace
}  // namespace hiroba::dsm
