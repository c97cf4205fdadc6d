// SPDX-License-Identifier: BSD-3-Clause
// Role: what every provider promises of sleep: no wake-up is lost, and nothing burns a core while
// nothing happens. Sleeps here have a timeout far beyond the job's limit: a lost wake-up fails the
// test instead of costing a little time.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "conformance/suite.hpp"
#include "gas/gas.hpp"

namespace hiroba::conformance {
namespace {

using net::MessageKind;
using net::Provider;
using net::Urgency;

HIROBA_CONFORMANCE(Waiting);

constexpr std::uint64_t for_ever_ns = 1'000'000'000'000;

/// What this process has computed so far.
std::uint64_t cpu_ns() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto ns = [](const timeval& time) {
        return time.tv_sec * 1'000'000'000ull + time.tv_usec * 1'000ull;
    };
    return ns(usage.ru_utime) + ns(usage.ru_stime);
}

/// Counts messages of the kind `test`.
struct Arrived {
    std::atomic<std::uint64_t> count{0};
    std::atomic<bool> enough{false};  ///< first byte of the last message
    static void take(void* context, NodeId, Bytes bytes) noexcept {
        auto& arrived = *static_cast<Arrived*>(context);
        if (!bytes.empty()) arrived.enough = bytes[0] != std::byte{0};
        arrived.count.fetch_add(1);
    }
    bool reached(std::uint64_t wanted) const { return count.load() >= wanted; }
};

/// How often a thread of this process has left its core of its own accord.
std::uint64_t sleeps_of(pid_t thread) {
    std::ifstream status{"/proc/self/task/" + std::to_string(thread) + "/status"};
    for (std::string word; status >> word;) {
        std::uint64_t count = 0;
        if (word == "voluntary_ctxt_switches:" && status >> count) return count;
    }
    ADD_FAILURE() << "thread " << thread << " has no count of switches";
    return 0;
}

/// Waits without spinning or yielding: every round goes through the kernel's bed.
template <class Predicate>
void sleep_until(net::Endpoint& endpoint, Predicate predicate) {
    while (!predicate()) {
        endpoint.provider().sleep(
            Provider::Sleeper::waiter, for_ever_ns,
            [](void* p) { return (*static_cast<Predicate*>(p))(); }, &predicate);
        while (endpoint.poll()) {
        }
    }
}

// Whether a wait sleeps is the machine's choice as well: on a full one the answer has often come
// before the waiter looks. So rounds go on until both have slept often enough.
TEST_P(Waiting, a_sleeper_is_woken_by_each_of_many_messages) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "one thread cannot wake itself";
    run([](Rig& rig) {
        const NodeId partner{rig.self.value ^ 1};
        const bool first = rig.self.value % 2 == 0;
        auto endpoint = rig.open();
        const std::uint64_t rounds = rig.rounds(100'000 / rig.nodes);  // two messages each
        const std::uint64_t rounds_max = 20 * rounds;
        Arrived arrived;
        endpoint->on(MessageKind::test, Arrived::take, &arrived);
        ASSERT_TRUE(endpoint->connect());
        Random random{rig.self.value};
        // Answers come after 0 to 8 us of work: before, while and after the partner goes to bed.
        const auto send = [&](bool enough) {
            for (std::uint64_t end_ns = now_ns() + random.below(8'000); now_ns() < end_ns;) {
            }
            const auto word = static_cast<std::byte>(enough);
            const Bytes parts[] = {{&word, 1}};
            endpoint->send(partner, MessageKind::test, Urgency::when_polled, parts);
        };
        const auto slept = [&] { return rig.sleeps() > rounds / 4; };

        bool over = false;
        for (std::uint64_t round = 1; !over; ++round) {
            const bool enough = round >= rounds && (slept() || round >= rounds_max);
            if (first) send(enough);
            sleep_until(*endpoint, [&] { return arrived.reached(round); });
            over = arrived.enough && (first || enough);
            if (!first) send(over);
        }
        EXPECT_TRUE(slept());
        rig.meet();
    });
}

TEST_P(Waiting, a_sleeper_is_woken_by_a_store_followed_by_wake) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "one thread cannot wake itself";
    run([](Rig& rig) {
        const NodeId partner{rig.self.value ^ 1};
        const bool first = rig.self.value % 2 == 0;
        auto endpoint = rig.open();
        auto segment = *gas::Segment::allocate(*endpoint, 4096);
        ASSERT_TRUE(endpoint->connect());
        segment.attach();

        const std::uint64_t rounds = rig.rounds(10'000);
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            const auto tell = [&] {
                segment.store({partner, 0}, round);
                endpoint->wake(partner);
            };
            if (first) tell();
            sleep_until(*endpoint, [&] { return segment.load({rig.self, 0}) >= round; });
            if (!first) tell();
        }
        rig.meet();
    });
}

TEST_P(Waiting, threads_of_a_node_wake_each_other) {
    run([](Rig& rig) {
        constexpr std::uint64_t threads = 4;
        auto endpoint = rig.open();
        const std::uint64_t rounds = rig.storm ? 1'000 : rig.rounds(5'000);
        ASSERT_TRUE(endpoint->connect());
        std::atomic<std::uint64_t> turn{0};
        const auto work = [&](std::uint64_t thread) {
            for (std::uint64_t round = 0; round < rounds; ++round) {
                sleep_until(*endpoint, [&] { return turn.load() == round * threads + thread; });
                turn.fetch_add(1);
                endpoint->wake_local();
            }
        };
        std::vector<Thread> others;
        for (std::uint64_t thread = 1; thread < threads; ++thread)
            others.emplace_back(work, thread);
        work(0);
        for (Thread& other : others) other.join();
        EXPECT_EQ(turn.load(), rounds * threads);
        rig.meet();
    });
}

TEST_P(Waiting, no_waiter_is_stranded_when_the_one_that_polled_goes) {
    run([](Rig& rig) {
        // Every node sends its neighbour one message for each of the neighbour's threads, round by
        // round; any thread may be the one that polls any of them.
        constexpr std::uint64_t threads = 3;
        struct Turns {
            std::atomic<std::uint64_t> of[threads] = {};
            static void take(void* context, NodeId, Bytes body) noexcept {
                auto& turns = *static_cast<Turns*>(context);
                turns.of[static_cast<std::size_t>(body[0])].fetch_add(1);
            }
        } turns;
        auto endpoint = rig.open();
        const std::uint64_t rounds = rig.rounds(3'000);
        endpoint->on(MessageKind::test, Turns::take, &turns);
        ASSERT_TRUE(endpoint->connect());
        const auto work = [&](std::uint64_t thread) {
            const auto name = static_cast<std::byte>(thread);
            const Bytes parts[] = {Bytes{&name, 1}};
            for (std::uint64_t round = 1; round <= rounds; ++round) {
                endpoint->send(rig.next(), MessageKind::test, Urgency::when_polled, parts);
                const auto ready = [&] { return turns.of[thread].load() >= round; };
                if (round % 2 == 0) {
                    endpoint->wait_until(ready);
                } else {
                    sleep_until(*endpoint, ready);
                }
            }
        };
        std::vector<Thread> others;
        for (std::uint64_t thread = 1; thread < threads; ++thread)
            others.emplace_back(work, thread);
        work(0);
        for (Thread& other : others) other.join();
        rig.meet();
    });
}

TEST_P(Waiting, an_idle_node_uses_less_than_a_hundredth_of_a_core) {
    run([](Rig& rig) {
        auto endpoint = rig.open();
        ASSERT_TRUE(endpoint->connect());
        Thread service{[&] { endpoint->serve(); }};
        // Two waiters and the service thread; only the clock ends the wait. Beside other work a
        // wake-up costs several times what it costs alone: the quietest window counts.
        constexpr std::uint64_t window_ns = 500'000'000, windows_max = 8;
        bool is_idle = false;
        for (std::uint64_t window = 0; window < windows_max && !is_idle; ++window) {
            const std::uint64_t start_ns = now_ns();
            const std::uint64_t idle_from_ns = cpu_ns();
            const auto wait = [&] {
                endpoint->wait_until([&] { return now_ns() - start_ns >= window_ns; });
            };
            Thread other{wait};
            wait();
            other.join();
            const std::uint64_t wall_ns = now_ns() - start_ns;
            is_idle = (cpu_ns() - idle_from_ns) * 100 < rig.limit_ns(wall_ns, 100 * wall_ns);
        }
        EXPECT_TRUE(is_idle);
        endpoint->stop();
        service.join();
        rig.meet();
    });
}

TEST_P(Waiting, what_one_thread_polls_for_wakes_no_other) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "nothing comes from elsewhere";
    if (GetParam().provider == "verbs")
        GTEST_SKIP() << "each arrival wakes the service thread there";
    if (GetParam().simulated()) GTEST_SKIP() << "threads share that of the simulator";
    run([](Rig& rig) {
        const NodeId partner{rig.self.value ^ 1};
        const bool first = rig.self.value % 2 == 0;
        auto endpoint = rig.open();
        Arrived arrived;
        endpoint->on(MessageKind::test, Arrived::take, &arrived);
        ASSERT_TRUE(endpoint->connect());
        std::atomic<pid_t> service_id{0};
        Thread service{[&] {
            service_id.store(gettid());
            endpoint->serve();
        }};
        while (service_id.load() == 0) sched_yield();
        // Never sleeps; yields only where it shares its core for long.
        constexpr std::uint32_t polls_before_yield = 200;
        // Beside other work the poller is off its core for long, and the service thread has to
        // look after the node: the quietest window counts.
        constexpr std::uint64_t windows = 5;
        const std::uint64_t rounds = rig.rounds(200'000 / rig.nodes) / windows;
        std::uint64_t round = 0;
        bool is_quiet = false;
        for (std::uint64_t window = 1; window <= windows; ++window) {
            const std::uint64_t start_ns = now_ns(), switches_before = sleeps_of(service_id);
            for (; round < window * rounds; ++round) {
                const auto send = [&] {
                    endpoint->send(partner, MessageKind::test, Urgency::when_polled, {});
                };
                if (first) send();
                for (std::uint32_t polls = 1; !arrived.reached(round + 1); ++polls)
                    if (!endpoint->poll() && polls % polls_before_yield == 0) sched_yield();
                if (!first) send();
            }
            const std::uint64_t spent_ns = now_ns() - start_ns;
            const std::uint64_t switches = sleeps_of(service_id) - switches_before;
            // It looks up after 200 us at the soonest, and some switches are of the beginning.
            const std::uint64_t limit = spent_ns / 100'000 + 100;
            is_quiet |= switches < limit;
            RecordProperty("service_switches_" + std::to_string(window),
                           static_cast<int>(switches));
            if (switches >= limit) std::printf("%lu switches in %lu rounds\n", switches, rounds);
        }
        EXPECT_TRUE(is_quiet);
        endpoint->stop();
        service.join();
        rig.meet();
    });
}

TEST_P(Waiting, waits_end_soon_although_waiters_outnumber_cores) {
    run([](Rig& rig) {
        // Four waiting threads a node pass a token around all nodes.
        constexpr std::uint64_t threads = 4;
        auto endpoint = rig.open();
        const std::uint64_t laps = rig.rounds(300);
        auto segment = *gas::Segment::allocate(*endpoint, 4096);
        ASSERT_TRUE(endpoint->connect());
        segment.attach();
        const std::uint64_t all = rig.nodes * threads;
        const std::uint64_t start_ns = now_ns(), cpu_start_ns = cpu_ns();
        const auto work = [&](std::uint64_t thread) {
            const std::uint64_t place = thread * rig.nodes + rig.self.value;  // across nodes first
            for (std::uint64_t lap = 0; lap < laps; ++lap) {
                const std::uint64_t mine = lap * all + place;
                endpoint->wait_until([&] { return segment.load({NodeId{0}, 0}) == mine; });
                segment.store({NodeId{0}, 0}, mine + 1);
                for (std::uint32_t node = 0; node < rig.nodes; ++node) endpoint->wake(NodeId{node});
            }
        };
        std::vector<Thread> others;
        for (std::uint64_t thread = 1; thread < threads; ++thread)
            others.emplace_back(work, thread);
        work(0);
        for (Thread& other : others) other.join();
        const std::uint64_t hop_ns = (now_ns() - start_ns) / (laps * all);
        // All nodes do the same; their sum, by the core.
        const std::uint64_t processes = rig.simulation != nullptr ? 1 : rig.nodes;
        const std::uint64_t hop_cpu_ns = (cpu_ns() - cpu_start_ns) * processes /
                                         std::max(1u, std::thread::hardware_concurrency()) /
                                         (laps * all);
        RecordProperty("hop_ns", static_cast<int>(hop_ns));
        RecordProperty("hop_cpu_ns", static_cast<int>(hop_cpu_ns));
        // A starved hop costs slices that other waiters compute, a forgotten one 100 ms in which
        // all sleep; other work on the machine costs neither. In a storm a hop may also be sent
        // again a few times, each a slice late.
        constexpr std::uint64_t forgotten_ns = 100'000'000;
        EXPECT_LT(hop_cpu_ns, rig.limit_ns(rig.storm ? 20'000'000u : 8'000'000u, forgotten_ns));
        EXPECT_LT(hop_ns, forgotten_ns / 10 * 9);
        rig.meet();
    });
}

}  // namespace
}  // namespace hiroba::conformance
