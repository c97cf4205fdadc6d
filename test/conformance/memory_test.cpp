// SPDX-License-Identifier: BSD-3-Clause
// Role: what every provider promises of registered memory, asked through gas::Segment and directly.
#include <cstring>
#include <vector>

#include "conformance/suite.hpp"
#include "gas/gas.hpp"

namespace hiroba::conformance {
namespace {

using gas::GlobalAddress;
using gas::Segment;
using net::AtomicOp;

HIROBA_CONFORMANCE(Memory);

/// An endpoint and one connected segment.
struct Node {
    Node(Rig& rig, std::size_t bytes)
        : endpoint(rig.open()), segment(*Segment::allocate(*endpoint, bytes)) {
        const auto connected = endpoint->connect();
        EXPECT_TRUE(connected) << connected.error().text;
        segment.attach();
    }
    std::unique_ptr<net::Endpoint> endpoint;
    Segment segment;
};

TEST_P(Memory, is_zero_and_of_the_size_asked_for_at_first) {
    run([](Rig& rig) {
        auto endpoint = rig.open();
        const std::size_t sizes[] = {1, 4096, 4097, 1 << 20, std::size_t{64} << 30};
        std::vector<net::RegionId> regions;
        for (const std::size_t bytes : sizes) {
            regions.push_back(*endpoint->provider().allocate(bytes));
        }
        ASSERT_TRUE(endpoint->connect());
        for (std::size_t i = 0; i < regions.size(); ++i) {
            const MutableBytes local = endpoint->provider().local(regions[i]);
            EXPECT_EQ(local.size(), sizes[i]);
            EXPECT_EQ(local[0], std::byte{0});
            EXPECT_EQ(local[sizes[i] - 1], std::byte{0});
        }
        rig.meet();
    });
}

TEST_P(Memory, put_by_one_node_is_got_by_another_at_any_size_and_alignment) {
    run([](Rig& rig) {
        constexpr std::size_t share = 100'000;
        Node node{rig, share * rig.nodes};
        // Each node writes its share of every segment, then reads what the others wrote there.
        const auto byte_of = [](std::uint32_t writer, std::uint32_t owner, std::size_t i) {
            return static_cast<std::byte>(i * 31 + writer * 7 + owner * 3 + 1);
        };
        for (std::uint32_t owner = 0; owner < rig.nodes; ++owner) {
            std::size_t at = 0;
            for (std::size_t bytes = 0; at + bytes <= share; at += bytes++) {
                std::vector<std::byte> from(bytes);
                for (std::size_t i = 0; i < bytes; ++i)
                    from[i] = byte_of(rig.self.value, owner, at + i);
                node.segment.put({NodeId{owner}, rig.self.value * share + at}, from);
            }
        }
        rig.meet();

        std::size_t wrong = 0;
        for (std::uint32_t owner = 0; owner < rig.nodes; ++owner) {
            for (std::uint32_t writer = 0; writer < rig.nodes; ++writer) {
                std::vector<std::byte> copy(share - 1'000);
                node.segment.get({NodeId{owner}, writer * share}, copy);
                for (std::size_t i = 0; i < copy.size(); ++i) {
                    wrong += copy[i] != byte_of(writer, owner, i);
                }
            }
        }
        EXPECT_EQ(wrong, 0u);
        EXPECT_EQ(node.segment.local()[rig.next().value * share],
                  byte_of(rig.next().value, rig.self.value, 0));
        rig.meet();
    });
}

TEST_P(Memory, that_is_discarded_is_zero_for_all_and_takes_what_comes_then) {
    run([](Rig& rig) {
        // Longer than one piece that a device registers at once.
        constexpr std::size_t bytes = std::size_t{5} << 19, from = 4'096, discarded = 3 * 4'096;
        Node node{rig, bytes};
        const auto put = [&](std::size_t at, std::size_t count, int value) {
            const std::vector<std::byte> source(count, static_cast<std::byte>(value));
            node.segment.put({rig.next(), at}, source);
            rig.meet();
        };
        const auto got = [&](std::byte value, std::size_t at, std::size_t count) {
            std::vector<std::byte> copy(count, std::byte{9});
            node.segment.get({rig.next(), at}, copy);
            return count_of(value, copy);
        };
        put(0, bytes, 1);
        EXPECT_EQ(got(std::byte{1}, 0, bytes), bytes);
        rig.meet();

        node.segment.discard(from, discarded);
        EXPECT_EQ(count_of(std::byte{0}, {node.segment.local(), bytes}), discarded);
        rig.meet();
        EXPECT_EQ(got(std::byte{0}, from, discarded), discarded);
        EXPECT_EQ(got(std::byte{1}, 0, bytes), bytes - discarded);
        rig.meet();

        put(from, discarded, 2);
        EXPECT_EQ(count_of(std::byte{2}, {node.segment.local(), bytes}), discarded);
        rig.meet();
    });
}

TEST_P(Memory, each_atomic_returns_the_value_before_and_leaves_the_value_after) {
    run([](Rig& rig) {
        Node node{rig, 4096};
        net::Provider& provider = node.endpoint->provider();
        const NodeId at = rig.next();
        const auto apply = [&](AtomicOp op, std::uint64_t operand, std::uint64_t expected = 0) {
            std::uint64_t old = ~0ull;
            node.endpoint->complete([&](net::OpId id) {
                return provider.atomic(id, op, at, net::RegionId{0}, 16, operand, expected, &old);
            });
            return old;
        };
        EXPECT_EQ(apply(AtomicOp::swap, 0xff00ff), 0u);
        EXPECT_EQ(apply(AtomicOp::fetch_and, 0x0f00f0), 0xff00ffu);
        EXPECT_EQ(apply(AtomicOp::fetch_or, 0x1000), 0x0f00f0u);
        EXPECT_EQ(apply(AtomicOp::fetch_xor, 0x1001), 0x0f10f0u);
        EXPECT_EQ(apply(AtomicOp::fetch_add, ~0ull), 0x0f00f1u);
        EXPECT_EQ(apply(AtomicOp::compare_swap, 5, 1), 0x0f00f0u);         // fails
        EXPECT_EQ(apply(AtomicOp::compare_swap, 5, 0x0f00f0), 0x0f00f0u);  // succeeds
        EXPECT_EQ(apply(AtomicOp::fetch_add, 0), 5u);

        Segment& segment = node.segment;
        segment.store({at, 24}, 40);
        EXPECT_EQ(segment.fetch_add({at, 24}, 2), 40u);
        EXPECT_EQ(segment.compare_swap({at, 24}, 41, 7), 42u);
        EXPECT_EQ(segment.compare_swap({at, 24}, 42, 7), 42u);
        EXPECT_EQ(segment.swap({at, 24}, 8), 7u);
        EXPECT_EQ(segment.load({at, 24}), 8u);
        EXPECT_EQ(segment.load({at, 32}), 0u);
        rig.meet();
    });
}

TEST_P(Memory, atomics_of_all_threads_of_all_nodes_add_up_exactly) {
    run([](Rig& rig) {
        constexpr std::uint64_t threads = 2;
        constexpr GlobalAddress sum{NodeId{0}, 0}, steps{NodeId{0}, 8}, bits{NodeId{0}, 16},
            token{NodeId{0}, 24}, direct{NodeId{0}, 32};
        Node node{rig, 4096};
        // Even: each bit ends as it began. Where the token is asked for by messages, it goes round
        // as often however many nodes there are.
        const bool mapped = node.endpoint->provider().limits().maps_peers;
        const std::uint64_t count = 2 * rig.rounds(10'000 / (mapped ? 1 : rig.nodes));
        Segment& segment = node.segment;
        if (rig.self == NodeId{0}) segment.store(token, 1);
        rig.meet();

        const auto atomic = [&](AtomicOp op, GlobalAddress at, std::uint64_t operand,
                                std::uint64_t& old) {
            node.endpoint->complete([&](net::OpId id) {
                return node.endpoint->provider().atomic(id, op, at.node, net::RegionId{0},
                                                        at.offset, operand, 0, &old);
            });
        };
        const auto work = [&](std::uint64_t thread) {
            const std::uint64_t bit = 1ull << (rig.self.value * threads + thread);
            std::uint64_t old = 0;
            for (std::uint64_t i = 0; i < count; ++i) {
                segment.fetch_add(sum, 3);
                for (std::uint64_t seen = segment.load(steps);;) {
                    const std::uint64_t found = segment.compare_swap(steps, seen, seen + 1);
                    if (found == seen) break;
                    seen = found;
                }
                atomic(AtomicOp::fetch_add, direct, 5, old);  // not by the segment's inlined path
                atomic(AtomicOp::fetch_xor, bits, bit, old);
                if (((old & bit) != 0) != (i % 2 == 1)) ADD_FAILURE() << "bit of round " << i;
                // The thread that draws the token owns a counter that needs no atomics.
                // Its holder may need this node's poll to give it back: no service thread runs
                // here.
                while (segment.swap(token, 0) == 0) {
                    node.endpoint->poll();
                    yield();
                }
                std::uint64_t plain = 0;
                segment.get({NodeId{0}, 64}, std::as_writable_bytes(std::span(&plain, 1)));
                ++plain;
                segment.put({NodeId{0}, 64}, std::as_bytes(std::span(&plain, 1)));
                segment.swap(token, 1);
            }
        };
        Thread other{work, 1};
        work(0);
        other.join();
        rig.meet();

        const std::uint64_t workers = rig.nodes * threads;
        EXPECT_EQ(segment.load(sum), 3 * count * workers);
        EXPECT_EQ(segment.load(direct), 5 * count * workers);
        EXPECT_EQ(segment.load(steps), count * workers);
        EXPECT_EQ(segment.load(bits), 0u);
        EXPECT_EQ(segment.load({NodeId{0}, 64}), count * workers);
        rig.meet();
    });
}

TEST_P(Memory, accesses_in_order_take_a_lock_with_what_it_guards_and_give_both_back) {
    run([](Rig& rig) {
        using Access = Segment::Access;
        constexpr std::uint64_t lock = 0, guarded = 64;
        constexpr std::size_t words = 4'000;  // more than a datagram
        constexpr NodeId keeper{0};
        Node node{rig, guarded + words * 8};
        Segment& segment = node.segment;
        const std::uint64_t count = rig.rounds(300);
        rig.meet();

        std::vector<std::uint64_t> all(words);
        const MutableBytes bytes = std::as_writable_bytes(std::span{all});
        for (std::uint64_t i = 0; i < count; ++i) {
            for (std::uint64_t found = 1; found != 0;) {
                Access take[] = {Access::compare_swap(segment, lock, 0, rig.self.value + 1ull),
                                 Access::get(segment, guarded, bytes)};
                Segment::in_order(keeper, take);
                found = take[0].found;
                if (found != 0 && !node.endpoint->poll()) yield();  // no other thread serves peers
            }
            const std::uint64_t first = all[0];
            for (std::uint64_t& word : all) {
                ASSERT_EQ(word, first) << "round " << i << ": read before the lock was taken";
                ++word;
            }
            Access give[] = {Access::put(segment, guarded, bytes), Access::store(segment, lock, 0)};
            Segment::in_order(keeper, give);
            EXPECT_EQ(give[1].found, rig.self.value + 1ull);
        }
        rig.meet();
        EXPECT_EQ(segment.load({keeper, guarded}), count * rig.nodes);
        rig.meet();
    });
}

TEST_P(Memory, nodes_that_registered_differently_refuse_to_connect) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "nobody to differ from";
    run([](Rig& rig) {
        auto endpoint = rig.open();
        const std::size_t bytes = rig.self == NodeId{0} ? 8192 : 12288;
        ASSERT_TRUE(endpoint->provider().allocate(bytes));
        const auto connected = endpoint->connect();
        ASSERT_FALSE(connected);
        EXPECT_EQ(connected.error().kind, ErrorKind::refused);
        EXPECT_NE(connected.error().text.find("region"), std::string::npos)
            << connected.error().text;
        rig.meet();
    });
}

TEST_P(Memory, nodes_of_different_jobs_refuse_to_connect) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "nobody to differ from";
    run([](Rig& rig) {
        auto endpoint = rig.open(rig.self == NodeId{1} ? 8 : 7);
        const auto connected = endpoint->connect();
        ASSERT_FALSE(connected);
        EXPECT_NE(connected.error().text.find("job key"), std::string::npos)
            << connected.error().text;
        rig.meet();
    });
}

}  // namespace
}  // namespace hiroba::conformance
