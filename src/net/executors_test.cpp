// SPDX-License-Identifier: BSD-3-Clause
// Role: several executors: each empties queues of its own, posts by its own thread, and completes
// what it finds in its own set of the provider's queues; none needs a thread that polls.
#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "net/async.hpp"
#include "net/test_parts/idle_provider.hpp"

namespace hiroba::net {
namespace {

/// A set of queues for each thread that posts; its requests are complete when that thread asks.
class SetsProvider final : public test::IdleProvider {
public:
    explicit SetsProvider(std::uint32_t sets)
        : IdleProvider({.name = "sets",
                        .message_bytes_max = 4096,
                        .completes_inline = false,
                        .parallel = true,
                        .maps_peers = false,
                        .queue_pairs = sets}) {}
    Result<RegionId> allocate(std::size_t bytes) override {
        memory_.resize(bytes);
        return RegionId{0};
    }
    MutableBytes local(RegionId) noexcept override { return memory_; }
    Post put(OpId id, NodeId, RegionId, std::uint64_t offset, Bytes from) noexcept override {
        std::memcpy(memory_.data() + offset, from.data(), from.size());
        const std::scoped_lock lock{mutex_};
        std::vector<OpId>& own = pending_[std::this_thread::get_id()];
        if (own.size() == room) return Post::again;
        own.push_back(id);
        posted_by.insert(std::this_thread::get_id());
        return Post::posted;
    }
    std::size_t poll(Arrivals& arrivals, std::size_t) noexcept override {
        return polls_all ? tell(arrivals, {}) : tell(arrivals, std::this_thread::get_id());
    }
    std::size_t poll_own(Arrivals& arrivals, std::size_t) noexcept override {
        return polls_all ? 0 : tell(arrivals, std::this_thread::get_id());
    }
    void sleep(Sleeper, std::uint64_t, bool (*ready)(void*), void* argument) noexcept override {
        if (!ready(argument)) sched_yield();
    }

    static constexpr std::size_t room = 8;
    bool polls_all = false;  ///< poll() tells of all sets, poll_own() of none
    std::set<std::thread::id> posted_by;

private:
    /// @param whose  nobody's: all
    std::size_t tell(Arrivals& arrivals, std::thread::id whose) {
        std::vector<OpId> told;
        {
            const std::scoped_lock lock{mutex_};
            for (auto& [thread, pending] : pending_) {
                if (whose != std::thread::id{} && thread != whose) continue;
                told.insert(told.end(), pending.begin(), pending.end());
                pending.clear();
            }
        }
        for (const OpId id : told) arrivals.completed(id);
        return told.size();
    }
    std::mutex mutex_;
    std::vector<std::byte> memory_;
    std::map<std::thread::id, std::vector<OpId>> pending_;
};

struct Writers {
    Writers(std::uint32_t sets, std::uint32_t queues, std::uint32_t executors)
        : provider(new SetsProvider{sets}),
          endpoint(Endpoint::over(NodeId{0}, 2, std::unique_ptr<Provider>(provider))),
          async(std::make_unique<Async>(*endpoint, offload::Mode::always, queues, executors)),
          memory(*async->allocate(4096)) {
        EXPECT_TRUE(endpoint->connect());
    }
    /// `threads` threads make `each` writes each and ask nobody for progress.
    void write(int threads, int each) {
        std::vector<std::thread> others;
        std::latch all_there{threads};
        for (int thread = 0; thread < threads; ++thread) {
            others.emplace_back([this, &all_there, thread, each] {
                all_there.arrive_and_wait();
                const std::uint64_t offset = static_cast<std::uint64_t>(thread) * 8;
                for (int i = 0; i < each; ++i) {
                    const WriteParams params{
                        NodeId{1}, {mine, offset}, {memory, offset}, 8, {count, this}};
                    while (async->try_write(params) == Submission::again) sched_yield();
                }
            });
        }
        for (std::thread& other : others) other.join();
    }
    bool all_done(int wanted) {
        const std::uint64_t end_ns = now_ns() + 20'000'000'000;
        while (done < wanted && now_ns() < end_ns) sched_yield();
        return done == wanted;
    }
    static void count(void* data, Outcome outcome) noexcept {
        EXPECT_EQ(outcome, Outcome::done);
        auto& self = *static_cast<Writers*>(data);
        {
            const std::scoped_lock lock{self.mutex};
            self.completed_by.insert(std::this_thread::get_id());
        }
        ++self.done;
    }
    SetsProvider* provider;
    std::unique_ptr<Endpoint> endpoint;
    std::unique_ptr<Async> async;
    Handle memory, mine;
    std::mutex mutex;
    std::set<std::thread::id> completed_by;
    std::atomic<int> done{0};
    std::vector<std::byte> bytes = std::vector<std::byte>(4096);
    void begin() {
        async->attach();
        mine = *async->register_local(bytes);
    }
};

TEST(Executors, are_no_more_than_queues_and_than_the_provider_is_for) {
    const std::uint32_t cases[][4] = {{4, 8, 3, 3}, {2, 8, 3, 2}, {4, 2, 3, 2}, {1, 8, 8, 1}};
    for (const auto& [sets, queues, wanted, had] : cases) {
        Writers node{sets, queues, wanted};
        node.begin();
        EXPECT_EQ(node.async->executors(), had);
    }
}

// Threads are dealt out to queues by where their stacks lie, so of many at once some meet each.
TEST(Executors, post_and_complete_each_by_itself) {
    Writers node{4, 4, 4};
    node.begin();
    std::atomic<bool> over{false};
    std::thread service{[&] {  // the first executor
        while (!over) node.endpoint->poll(), sched_yield();
    }};
    constexpr int threads = 64, each = 25;
    node.write(threads, each);
    EXPECT_TRUE(node.all_done(threads * each));
    over = true;
    service.join();
    EXPECT_EQ(node.provider->posted_by.size(), 4u);
    EXPECT_EQ(node.completed_by, node.provider->posted_by);
    EXPECT_TRUE(node.async->idle());
}

TEST(Executors, that_sleep_are_woken_by_the_request) {
    Writers node{2, 2, 2};
    node.begin();
    std::atomic<bool> over{false};
    std::thread service{[&] {
        while (!over) node.endpoint->poll(), sched_yield();
    }};
    for (int round = 1; round <= 20; ++round) {
        // Longer than an executor stays up.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        node.write(4, 1);
        ASSERT_TRUE(node.all_done(4 * round));
    }
    over = true;
    service.join();
}

TEST(Executors, leave_to_the_poller_what_only_it_sees) {
    Writers node{3, 3, 3};
    node.provider->polls_all = true;
    node.begin();
    node.write(8, 4);
    node.endpoint->wait_until([&] { return node.done == 32; });
    EXPECT_TRUE(node.async->idle());
}

}  // namespace
}  // namespace hiroba::net
