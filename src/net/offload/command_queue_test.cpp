// SPDX-License-Identifier: BSD-3-Clause
// Role: the queue under every order of steps that a seeded scheduler comes up with, and under real
// threads. In the first, fibers stand for threads: only one runs, and before each access to shared
// memory the scheduler may go on with another, so a seed replays.
#include "net/offload/command_queue.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <ucontext.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/test_parts/given_number.hpp"

namespace hiroba::net::offload {
namespace {

/// Runs fibers to their end in an order drawn from a seed.
class Scheduler {
public:
    explicit Scheduler(std::uint64_t seed) : random_(seed) {}

    void add(std::function<void()> body) {
        auto fiber = std::make_unique<Fiber>();
        fiber->body = std::move(body);
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack.data();
        fiber->context.uc_stack.ss_size = fiber->stack.size();
        fiber->context.uc_link = &main_;
        makecontext(&fiber->context, &Scheduler::enter, 0);
        fibers_.push_back(std::move(fiber));
    }
    /// False when fibers are left that all sleep, or spin without end.
    bool run() {
        active = this;
        for (int steps = 0; steps < steps_max; ++steps) {
            std::vector<Fiber*> able;
            bool any_left = false;
            for (auto& fiber : fibers_) {
                any_left |= !fiber->ended;
                if (!fiber->ended && !fiber->asleep) able.push_back(fiber.get());
            }
            if (able.empty()) break;
            current_ = able[draw() % able.size()];
            swapcontext(&main_, &current_->context);
            if (!any_left) break;
        }
        active = nullptr;
        for (auto& fiber : fibers_) {
            if (!fiber->ended) return false;
        }
        return true;
    }
    /// Lets another fiber go on, perhaps.
    void step() {
        if (draw() % 3 != 0) swapcontext(&current_->context, &main_);
    }
    void sleep() {
        current_->asleep = true;
        swapcontext(&current_->context, &main_);
    }
    void wake(std::size_t index) { fibers_[index]->asleep = false; }

    static constexpr int steps_max = 100'000;
    static inline Scheduler* active = nullptr;

private:
    struct Fiber {
        std::function<void()> body;
        ucontext_t context{};
        std::vector<char> stack = std::vector<char>(64 << 10);
        bool ended = false;
        bool asleep = false;
    };
    static void enter() {
        active->current_->body();
        active->current_->ended = true;
    }
    std::uint64_t draw() {
        random_ = random_ * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
        return random_ >> 33;
    }
    std::uint64_t random_;
    ucontext_t main_{};
    std::vector<std::unique_ptr<Fiber>> fibers_;
    Fiber* current_ = nullptr;
};

struct Interleaved {
    static void before() {
        if (Scheduler::active != nullptr) Scheduler::active->step();
    }
};

/// What a command says: its author and its number.
struct Numbered {
    std::uint32_t author = 0;
    std::uint32_t number = 0;
};

constexpr std::size_t producers = 3, commands_each = 9;

/// Takes in what producers made and checks that nothing is lost, doubled or out of order.
struct Received {
    std::uint32_t next[producers] = {};
    std::size_t count = 0;
    bool wrong = false;

    void take(const Numbered& command) {
        wrong |= command.author >= producers || command.number != next[command.author]++;
        ++count;
    }
};

/// One run: producers that spin on "full", a consumer that goes to bed when nothing is there.
std::string run_interleaved(std::uint64_t seed) {
    using Queue = CommandQueue<Numbered, 4, Interleaved>;
    auto queue = std::make_unique<Queue>();
    Scheduler scheduler{seed};
    Received received;
    // The consumer is fiber 0. `announced` is Provider::sleep's announcement: after it a wake-up is
    // not lost.
    bool announced = false, rung = false;
    scheduler.add([&] {
        while (received.count < producers * commands_each) {
            Numbered* commands[3];
            const std::size_t count = queue->peek(commands);
            for (std::size_t i = 0; i < count; ++i) received.take(*commands[i]);
            if (count != 0) queue->take(count);
            if (count != 0) continue;
            announced = true;
            rung = false;
            const bool may_sleep = queue->sleep_if_empty();
            if (may_sleep && !rung) scheduler.sleep();
            announced = false;
            queue->awake();
            if (!may_sleep) Interleaved::before();
        }
    });
    for (std::uint32_t author = 0; author < producers; ++author) {
        scheduler.add([&, author] {
            for (std::uint32_t number = 0; number < commands_each; ++number) {
                Queue::Put put;
                while ((put = queue->put([&](Numbered& place) {
                           place.author = author;
                           Interleaved::before();
                           place.number = number;
                       })) == Queue::Put::full) {
                    Interleaved::before();
                }
                if (put == Queue::Put::done_wake && announced) {
                    rung = true;
                    scheduler.wake(0);
                }
            }
        });
    }
    if (!scheduler.run())
        return "the consumer is left asleep with " + std::to_string(received.count);
    if (received.wrong) return "a command was lost, doubled or out of order";
    return queue->empty() ? "" : "not empty in the end";
}

TEST(CommandQueue, loses_doubles_and_strands_nothing_in_any_order_of_steps) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer does not follow fibers";
#endif
    const std::uint64_t replayed = given_number("HIROBA_TEST_SEED", 0);
    const std::uint64_t first = replayed != 0 ? replayed : 1;
    const std::uint64_t last = replayed != 0 ? replayed : given_number("COMMAND_QUEUE_RUNS", 5'000);
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        const std::string fault = run_interleaved(seed);
        ASSERT_EQ(fault, "") << "replay: HIROBA_TEST_SEED=" << seed
                             << " test_net --gtest_filter=CommandQueue.loses*";
    }
}

using Small = CommandQueue<Numbered, 4>;

TEST(CommandQueue, is_full_exactly_at_its_capacity) {
    Small queue;
    std::uint32_t number = 0;
    const auto put = [&] { return queue.put([&](Numbered& place) { place = {0, number++}; }); };
    for (int i = 0; i < 4; ++i) EXPECT_EQ(put(), Small::Put::done);
    EXPECT_EQ(put(), Small::Put::full);
    EXPECT_EQ(number, 4u);  // what is full touches nothing

    Numbered* commands[8];
    ASSERT_EQ(queue.peek(commands), 4u);
    EXPECT_EQ(commands[3]->number, 3u);
    queue.take(1);
    EXPECT_EQ(put(), Small::Put::done);
    EXPECT_EQ(put(), Small::Put::full);
    ASSERT_EQ(queue.peek(commands), 4u);
    EXPECT_EQ(commands[0]->number, 1u);
    EXPECT_EQ(commands[3]->number, 4u);
}

TEST(CommandQueue, tells_the_first_producer_alone_that_the_consumer_sleeps) {
    Small queue;
    const auto put = [&] { return queue.put([](Numbered&) {}); };
    EXPECT_TRUE(queue.sleep_if_empty());
    EXPECT_TRUE(queue.sleep_if_empty());
    EXPECT_EQ(put(), Small::Put::done_wake);
    EXPECT_EQ(put(), Small::Put::done);
    EXPECT_FALSE(queue.sleep_if_empty());
    Numbered* commands[4];
    queue.take(queue.peek(commands));
    EXPECT_TRUE(queue.sleep_if_empty());
    queue.awake();
    EXPECT_EQ(put(), Small::Put::done);
}

TEST(CommandQueue, carries_the_commands_of_four_threads) {
    static CommandQueue<Numbered, 256> queue;
    constexpr std::uint32_t count = 50'000;
    std::vector<std::thread> threads;
    for (std::uint32_t author = 0; author < 4; ++author) {
        threads.emplace_back([author] {
            for (std::uint32_t number = 0; number < count; ++number) {
                const auto fill = [&](Numbered& place) { place = {author, number}; };
                while (queue.put(fill) == decltype(queue)::Put::full) sched_yield();
            }
        });
    }
    std::uint32_t next[4] = {};
    std::uint64_t wrong = 0, received = 0;
    while (received < 4ull * count) {
        Numbered* commands[32];
        const std::size_t there = queue.peek(commands);
        for (std::size_t i = 0; i < there; ++i) {
            wrong += commands[i]->number != next[commands[i]->author]++;
        }
        queue.take(there);
        received += there;
        if (there == 0) sched_yield();
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace hiroba::net::offload
