// SPDX-License-Identifier: BSD-3-Clause
// Role: for unit tests, nodes that share one process: a provider that maps the memory of a host's,
// reaches that of other hosts in exchanges that are counted, and keeps messages in queues, in the
// order in which they were sent. Threads: any; a queue has one lock.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "net/net.hpp"
#include "net/provider/apply_atomic.hpp"

namespace hiroba::dsm::test {

/// What lies between the nodes.
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
    explicit Wire(std::uint32_t nodes, std::size_t message_bytes_max = 65536)
        : message_bytes_max(message_bytes_max), inboxes(nodes), memory(nodes) {}
    std::size_t message_bytes_max;
    std::atomic<std::size_t> messages{0};   ///< sent so far
    std::atomic<std::size_t> exchanges{0};  ///< between hosts: a list is one
    bool lists_in_order = false;
    std::vector<Inbox> inboxes;
    struct alignas(page_bytes) Page {
        std::byte bytes[page_bytes];
    };
    struct Region {
        std::size_t bytes;
        std::vector<Page> pages = std::vector<Page>((bytes + sizeof(Page) - 1) / sizeof(Page));
    };
    std::vector<std::uint32_t>
        hosts{};  ///< by node: nodes map those of their host; empty: one host
    /// The memory of each node, by region; a deque, since one that is added moves no other.
    std::vector<std::deque<Region>> memory;
};

class WireProvider final : public net::Provider {
public:
    WireProvider(Wire& wire, NodeId self)
        : wire_(wire), self_(self), limits_{"wire", wire.message_bytes_max, true, true,
                                            true,   wire.lists_in_order} {}
    const net::Limits& limits() const noexcept override { return limits_; }
    Result<net::RegionId> allocate(std::size_t bytes) override {
        auto& mine = wire_.memory[self_.value];
        mine.push_back({bytes});
        return net::RegionId{static_cast<std::uint32_t>(mine.size() - 1)};
    }
    MutableBytes local(net::RegionId region) noexcept override {
        return {mapped(self_, region), wire_.memory[self_.value][region.value].bytes};
    }
    std::byte* mapped(NodeId node, net::RegionId region) noexcept override {
        if (!wire_.hosts.empty() && wire_.hosts[node.value] != wire_.hosts[self_.value])
            return nullptr;
        return at(node, region);
    }
    Result<void> connect() override { return {}; }
    net::Post send(NodeId to, net::MessageKind kind, net::Urgency,
                   std::span<const Bytes> parts) noexcept override {
        Wire::Message message{self_, kind, {}};
        for (const Bytes part : parts) {
            message.body.insert(message.body.end(), part.begin(), part.end());
        }
        EXPECT_LE(message.body.size(), limits_.message_bytes_max);
        Wire::Inbox& inbox = wire_.inboxes[to.value];
        const std::scoped_lock guard{inbox.mutex};
        inbox.messages.push_back(std::move(message));
        ++wire_.messages;
        return net::Post::done;
    }
    net::Post put(net::OpId, NodeId to, net::RegionId region, std::uint64_t offset,
                  Bytes from) noexcept override {
        count();
        std::memcpy(at(to, region) + offset, from.data(), from.size());
        return net::Post::done;
    }
    net::Post get(net::OpId, MutableBytes to, NodeId from, net::RegionId region,
                  std::uint64_t offset) noexcept override {
        count();
        std::memcpy(to.data(), at(from, region) + offset, to.size());
        return net::Post::done;
    }
    net::Post atomic(net::OpId, net::AtomicOp op, NodeId node, net::RegionId region,
                     std::uint64_t offset, std::uint64_t operand, std::uint64_t expected,
                     std::uint64_t* old) noexcept override {
        count();
        auto* const word = reinterpret_cast<std::uint64_t*>(at(node, region) + offset);
        *old = net::apply_atomic(std::atomic_ref{*word}, op, operand, expected);
        return net::Post::done;
    }
    std::size_t post(std::span<net::Work> list) noexcept override {
        count();
        in_list_ = true;
        const std::size_t taken = net::Provider::post(list);
        in_list_ = false;
        return taken;
    }
    std::size_t poll(net::Arrivals& arrivals, std::size_t) noexcept override {
        Wire::Message message;
        Wire::Inbox& inbox = wire_.inboxes[self_.value];
        {
            const std::scoped_lock guard{inbox.mutex};
            if (inbox.messages.empty()) return 0;
            message = std::move(inbox.messages.front());
            inbox.messages.pop_front();
        }
        arrivals.message(message.from, message.kind, message.body);
        return 1;
    }
    void sleep(Sleeper, std::uint64_t, bool (*)(void*), void*) noexcept override { sched_yield(); }
    void wake(NodeId, Sleeper) noexcept override {}

private:
    std::byte* at(NodeId node, net::RegionId region) noexcept {
        return reinterpret_cast<std::byte*>(wire_.memory[node.value][region.value].pages.data());
    }
    void count() noexcept { wire_.exchanges += in_list_ ? 0 : 1; }

    Wire& wire_;
    NodeId self_;
    net::Limits limits_;
    bool in_list_ = false;
};

}  // namespace hiroba::dsm::test
