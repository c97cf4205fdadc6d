// SPDX-License-Identifier: BSD-3-Clause
// Role: for tests of requests: a provider that is entered by one thread at a time, has little room,
// and completes two polls later; and a node over it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "net/async.hpp"

namespace hiroba::net {

/// Two nodes' memory in one process. A message comes back as if its target had sent it.
class LateProvider final : public Provider {
public:
    /// @param gathers  it is parallel and takes what may leave with the next
    explicit LateProvider(bool gathers = false) : gathers_(gathers) {}
    const Limits& limits() const noexcept override {
        static constexpr Limits one_at_a_time{"late", 4096, false, false, false};
        static constexpr Limits gathering{"late", 4096, false, true, false, false, true};
        return gathers_ ? gathering : one_at_a_time;
    }
    std::size_t post_with_next(std::span<Work> list, bool waits) noexcept override {
        if (busy && !waits) return 0;
        gathered += list.size();
        return post(list);
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
        ++polls;
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
    bool busy = false;  ///< as if another thread were in it
    std::size_t gathered = 0;
    std::atomic<int> calls{0}, overlaps{0}, service_wakes{0}, polls{0};
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
    bool gathers_;
    std::atomic<bool> entered{false};
    std::size_t bytes_ = 0;
    std::vector<std::uint64_t> memory_[2];
    std::deque<Pending> pending_;
};

inline constexpr NodeId far_node{1};

/// Node 0, its requests, and 1000 bytes on each node.
struct Node {
    explicit Node(offload::Mode mode, bool gathers = false)
        : provider(new LateProvider{gathers}),
          endpoint(Endpoint::over(NodeId{0}, 2, std::unique_ptr<Provider>(provider))),
          async(std::make_unique<Async>(*endpoint, mode)),
          memory(*async->allocate(1000)) {
        EXPECT_TRUE(endpoint->connect());
        async->attach();
    }
    /// Waits for everything requested so far.
    void drain() {
        endpoint->wait_until([&] { return async->idle(); });
    }
    LateProvider* provider;
    std::unique_ptr<Endpoint> endpoint;
    std::unique_ptr<Async> async;
    Handle memory;
};

inline void count_up(void* data, Outcome outcome) noexcept {
    EXPECT_EQ(outcome, Outcome::done);
    static_cast<std::atomic<int>*>(data)->fetch_add(1);
}

}  // namespace hiroba::net
