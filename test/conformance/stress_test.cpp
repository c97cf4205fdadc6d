// SPDX-License-Identifier: BSD-3-Clause
// Role: everything at once for a while: messages of all sizes, some urgent, answered by handlers,
// remote memory and atomics, several threads a node and a service thread; then nothing may be
// missing.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "base/test_parts/given_number.hpp"
#include "conformance/suite.hpp"
#include "gas/gas.hpp"

namespace hiroba::conformance {
namespace {

using net::MessageKind;
using net::Urgency;

HIROBA_CONFORMANCE(Stress);

/// Offsets in the segment, all on node 0.
constexpr std::uint64_t asked_at = 0, answered_at = 8, bytes_at = 16;
constexpr std::uint64_t asked_least = 100;  // by each node

struct Worker {
    net::Endpoint& endpoint;
    gas::Segment& segment;
    Rig& rig;
    std::atomic<std::uint64_t> answers{0};  // that came back to this node
    std::atomic<std::uint64_t> bytes{0};    // of questions that reached this node

    /// A question is answered from the handler; an answer is empty.
    static void take(void* context, NodeId from, Bytes body) noexcept {
        auto& self = *static_cast<Worker*>(context);
        if (body.empty()) {
            self.answers.fetch_add(1);
            return;
        }
        self.bytes.fetch_add(body.size());
        self.endpoint.send(from, MessageKind::test, Urgency::when_polled, {});
    }

    void run(std::uint64_t seed, std::uint64_t until_ns, std::atomic<std::uint64_t>& asked) {
        Random random{seed};
        std::vector<std::byte> body(endpoint.provider().limits().message_bytes_max);
        // At least so many, however little of the machine there is.
        while (now_ns() < until_ns || asked.load() <= asked_least) {
            const NodeId to{static_cast<std::uint32_t>(random.below(rig.nodes))};
            const std::size_t size =
                1 + random.below(random.below(8) == 0 ? body.size() - 1 : std::size_t{100});
            const Bytes parts[] = {Bytes{body.data(), size}};
            const auto urgency =
                random.below(16) == 0 ? Urgency::wake_service : Urgency::when_polled;
            segment.fetch_add({NodeId{0}, bytes_at}, size);
            const std::uint64_t mine = asked.fetch_add(1) + 1;
            endpoint.send(to, MessageKind::test, urgency, parts);
            // At most a window of questions is out, sometimes none: then all nodes sleep and wake.
            const std::uint64_t window = random.below(4) == 0 ? 0 : 16;
            endpoint.wait_until([&] { return answers.load() + window >= mine; });
        }
    }
};

TEST_P(Stress, of_everything_at_once_loses_nothing) {
    const std::uint64_t seed = given_number("HIROBA_TEST_SEED", now_ns());
    SCOPED_TRACE("replay with HIROBA_TEST_SEED=" + std::to_string(seed));
    run(
        [seed](Rig& rig) {
            constexpr std::uint64_t threads = 2;
            const std::uint64_t duration_ns = rig.duration_ns(500'000'000);
            auto endpoint = rig.open();
            auto segment = *gas::Segment::allocate(*endpoint, 4096);
            Worker worker{*endpoint, segment, rig};
            endpoint->on(MessageKind::test, Worker::take, &worker);
            ASSERT_TRUE(endpoint->connect());
            segment.attach();
            rig.meet();
            Thread service{[&] { endpoint->serve(); }};

            std::atomic<std::uint64_t> asked{0};
            const std::uint64_t until_ns = now_ns() + duration_ns;
            std::vector<Thread> others;
            for (std::uint64_t thread = 0; thread < threads; ++thread) {
                others.emplace_back([&, thread] {
                    worker.run(seed + rig.self.value * threads + thread, until_ns, asked);
                });
            }
            for (Thread& other : others) other.join();
            endpoint->wait_until([&] { return worker.answers.load() == asked.load(); });
            segment.fetch_add({NodeId{0}, asked_at}, asked.load());
            rig.meet();  // every question of every node was answered: nothing is under way
            segment.fetch_add({NodeId{0}, answered_at}, worker.answers.load());
            segment.fetch_add({NodeId{0}, bytes_at}, -worker.bytes.load());
            rig.meet();

            EXPECT_GT(asked.load(), asked_least);
            EXPECT_EQ(segment.load({NodeId{0}, asked_at}), segment.load({NodeId{0}, answered_at}));
            EXPECT_EQ(segment.load({NodeId{0}, bytes_at}), 0u);
            endpoint->stop();
            service.join();
            rig.meet();
        },
        30);
}

}  // namespace
}  // namespace hiroba::conformance
