// SPDX-License-Identifier: BSD-3-Clause
// Role: what hiroba/kick.hpp promises, between real processes, over each provider as it is and as
// if it mapped nothing. The claims are those of kick_test.cpp, of the surface that programs have.
#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "conformance/async_node.hpp"
#include "conformance/both_ways.hpp"
#include "hiroba/kick.hpp"

namespace hiroba::conformance {
namespace {

using namespace kick;
using kick::page_bytes;

HIROBA_CONFORMANCE(KickFace);

constexpr std::uint64_t job_key = 7;

struct FaceOfKicks {
    FaceOfKicks(Rig& rig, bool mapped)
        : network(network_over(open_mapped(rig, mapped, job_key), {}, job_key)),
          board(Board::make(*network, &why)),
          next(rig.next()),
          before{(rig.self.value + rig.nodes - 1) % rig.nodes} {
        EXPECT_NE(board, nullptr) << why;
    }
    void connect() { ASSERT_TRUE(network->connect(&why)) << why; }
    /// Whether the line says it; it must not be one of earlier.
    bool says(const char* what) {
        const bool said = why.find(what) != std::string::npos && why.find('\n') == why.npos;
        if (!said) ADD_FAILURE() << "'" << why << "' does not say '" << what << "'";
        why.clear();
        return said;
    }
    std::string why;
    std::unique_ptr<net::Network> network;
    std::unique_ptr<Board> board;
    NodeId next, before;
};

template <class Body>
void on_kicks(Rig& rig, Body&& body) {
    both_ways(rig, [&](bool mapped) {
        FaceOfKicks node{rig, mapped};
        body(node);
    });
}

TEST_P(KickFace, kicks_of_1_2_4_and_8_bytes_land_in_order_and_inside_their_page) {
    run([](Rig& rig) {
        on_kicks(rig, [&](FaceOfKicks& node) {
            node.board->reserve(page_bytes, page_bytes);
            const Offset place = *node.board->reserve(page_bytes, page_bytes);
            node.connect();
            auto ones = *node.board->kick<std::uint8_t>(node.next, place);
            auto twos = *node.board->kick<std::uint16_t>(node.next, place);
            auto fours = *node.board->kick<float>(node.next, place);
            auto eights = *node.board->kick<double>(node.next, place);
            auto last = *node.board->kick<std::uint64_t>(node.next, place + 8);  // the same page
            ones.store(3, 0x5a);
            twos.store_with_next(6, 0xbeef);
            fours.store(12, 1.5f);
            eights.store(4088, -2.25);
            eights.store(4096 + 33, 4.5);  // the low 12 bits count, and of them what is aligned
            for (std::uint64_t i = 1; i <= 1000; ++i) last.store(64, i);
            node.board->wake(node.next);
            expect_kicks_of_each_width(*node.board, place);
            EXPECT_EQ(node.board->load<double>(place + 32), 4.5);
            const std::byte* const other = node.board->at(place - page_bytes);
            EXPECT_EQ(std::count(other, other + page_bytes, std::byte{0}), long{page_bytes});
            EXPECT_TRUE(last.store_checked(4080, 1, &node.why));
            EXPECT_FALSE(last.store_checked(4096, 1, &node.why));
            EXPECT_TRUE(node.says("does not lie inside"));
            EXPECT_FALSE(last.store_checked(4092, 1, &node.why));
            EXPECT_TRUE(node.says("not aligned"));
            EXPECT_EQ(node.board->header_counts().misses, 1u);
            EXPECT_EQ(node.board->header_counts().hits, 4u);
            EXPECT_EQ(node.board->refused(), 0u);
            rig.meet();
        });
    });
}

TEST_P(KickFace, what_makes_no_sense_is_refused_with_a_line) {
    run([](Rig& rig) {
        on_kicks(rig, [&](FaceOfKicks& node) {
            const net::Handle odd = *node.network->allocate(page_bytes + 100);
            const net::Handle hidden = *node.network->allocate(page_bytes);
            Board& board = *node.board;
            EXPECT_TRUE(board.expose(odd, &node.why));
            EXPECT_FALSE(board.expose(net::Handle{900}, &node.why));
            EXPECT_TRUE(node.says("handle 900"));
            EXPECT_FALSE(board.reserve(std::size_t{1} << 20, 64, &node.why));
            EXPECT_NE(node.why.find("(Board::make's polled_bytes)"), std::string::npos);
            EXPECT_TRUE(node.says("1048576 bytes of polled memory"));
            EXPECT_FALSE(board.reserve(8, 48, &node.why));
            EXPECT_TRUE(node.says("aligned to 48"));
            EXPECT_EQ(board.window(0, node.next, node.before, &node.why), nullptr);
            EXPECT_TRUE(node.says("window of 0 bytes"));
            EXPECT_EQ(board.window(Window::bytes_max + 1, node.next, node.before, &node.why),
                      nullptr);
            EXPECT_TRUE(node.says("window of 1441 bytes"));
            const NodeId outside{rig.nodes};
            EXPECT_EQ(board.window(64, outside, {}, &node.why), nullptr);
            EXPECT_TRUE(node.says("of a job of"));
            EXPECT_FALSE(board.channel<int>({}, outside, &node.why));
            EXPECT_TRUE(node.says("of a job of"));
            EXPECT_EQ(board.barrier({rig.self, outside}, Shape::tree, &node.why), nullptr);
            EXPECT_TRUE(node.says("of a job of"));
            EXPECT_FALSE(board.all_reduce<int>({rig.self, rig.self}, Shape::tree, &node.why));
            EXPECT_TRUE(node.says("is a member twice"));
            EXPECT_EQ(Board::make(*node.network, &node.why), nullptr);
            EXPECT_TRUE(node.says("one board"));
            EXPECT_FALSE(board.kick<int>(node.next, Offset{0}, &node.why));
            EXPECT_TRUE(node.says("after Network::connect()"));
            node.connect();
            EXPECT_FALSE(board.kick<int>(outside, Offset{0}, &node.why));
            EXPECT_TRUE(node.says("of a job of"));
            EXPECT_FALSE(board.kick<int>(node.next, {hidden, 0}, &node.why));
            EXPECT_NE(node.why.find("call Board::expose()"), std::string::npos);
            EXPECT_TRUE(
                node.says(("handle " + std::to_string(hidden.value) + " is not exposed").c_str()));
            EXPECT_FALSE(board.kick<int>(node.next, {odd, 8}, &node.why));
            EXPECT_TRUE(node.says("offset 8"));
            auto end = board.kick<std::uint64_t>(node.next, {odd, page_bytes}, &node.why);
            ASSERT_TRUE(end) << node.why;
            EXPECT_TRUE(end->store_checked(88, 1));
            EXPECT_FALSE(end->store_checked(96, 1, &node.why));
            EXPECT_TRUE(node.says("of a page with 100"));
            EXPECT_FALSE(board.reserve(8, 64, &node.why));
            EXPECT_TRUE(node.says("before Network::connect()"));
            EXPECT_TRUE(node.network->allocate(8, &node.why))
                << node.why;  // memory comes later, too
            EXPECT_FALSE(node.network->connect(&node.why));
            EXPECT_TRUE(node.says("second time"));
            rig.meet();
        });
    });
}

TEST_P(KickFace, a_kick_after_a_write_lands_when_its_bytes_are_visible) {
    run([](Rig& rig) {
        on_kicks(rig, [&](FaceOfKicks& node) {
            constexpr std::size_t bytes = 20'000;  // several packets, in any order
            const net::Handle memory = *node.network->allocate(2 * bytes);
            const Offset place = *node.board->reserve(64);
            node.connect();
            auto kick = *node.board->kick<std::uint32_t>(node.next, place);
            KickAfter<std::uint32_t> flag{kick};
            std::byte* const local = node.network->local(memory).data();
            for (std::uint32_t round = 1; round <= (rig.storm ? 10u : 100u); ++round) {
                std::memset(local + bytes, static_cast<int>(round), bytes);
                until_accepted([&] {
                    return node.network->try_write_async(
                        {node.next,
                         {memory, bytes},
                         {memory, 0},
                         bytes,
                         flag.callback(static_cast<std::uint32_t>(place % page_bytes), round)});
                });
                node.board->wait_until<std::uint32_t>(
                    place, [round](std::uint32_t seen) { return seen == round; });
                EXPECT_EQ(count_of(static_cast<std::byte>(round), {local, bytes}), bytes);
                node.network->wait_until([&] { return flag.over(); });
                EXPECT_FALSE(flag.failed());
                rig.meet();
            }
        });
    });
}

TEST_P(KickFace, windows_carry_blocks_and_refuse_reuse_in_flight) {
    run([](Rig& rig) {
        on_kicks(rig, [&](FaceOfKicks& node) {
            std::vector<std::unique_ptr<Window>> windows;
            for (int i = 0; i < 64; ++i)
                windows.push_back(node.board->window(464, node.next, node.before));
            node.connect();
            for (unsigned round = 0; round < (rig.storm ? 4u : 20u); ++round) {
                for (unsigned w = 0; w < windows.size(); ++w) {
                    const std::uint32_t bytes = (round * 131 + w * 17) % 465;
                    windows[w]->await_room();
                    std::memset(windows[w]->payload().data(), static_cast<int>(round + w), bytes);
                    EXPECT_FALSE(windows[w]->send(465));
                    EXPECT_TRUE(windows[w]->send(bytes));
                }
                // No node takes before all have tried to send again.
                rig.meet();
                EXPECT_FALSE(windows[round]->may_overwrite());
                EXPECT_FALSE(windows[round]->send(1, &node.why));
                EXPECT_TRUE(node.says("is in flight"));
                rig.meet();
                for (unsigned w = 0; w < windows.size(); ++w) {
                    const Bytes bytes = windows[w]->receive();
                    EXPECT_TRUE(windows[w]->arrived());
                    EXPECT_EQ(bytes.size(), (round * 131 + w * 17) % 465);
                    EXPECT_EQ(
                        std::count(bytes.begin(), bytes.end(), static_cast<std::byte>(round + w)),
                        static_cast<long>(bytes.size()));
                    windows[w]->take();
                }
            }
            rig.meet();
        });
    });
}

TEST_P(KickFace, barriers_of_both_shapes_and_of_groups_hold_everybody_back) {
    run([](Rig& rig) {
        on_kicks(rig, [&](FaceOfKicks& node) {
            const Offset marks = *node.board->reserve(page_bytes, page_bytes);
            const Group pair = rig.nodes < 2 ? Group{} : Group{NodeId{1}, NodeId{0}};
            const auto fast = node.board->barrier();
            const auto tree = node.board->barrier({}, Shape::tree);
            const auto of_pair = node.board->barrier(pair, Shape::fastest, &node.why);
            EXPECT_EQ(of_pair != nullptr, rig.self.value < 2);
            EXPECT_EQ(node.why, "");
            node.connect();
            std::vector<Kick<std::uint64_t>> to_all;
            for (std::uint32_t peer = 0; peer < rig.nodes; ++peer)
                to_all.push_back(*node.board->kick<std::uint64_t>(NodeId{peer}, marks));
            Random random{rig.self.value + 1};
            for (std::uint64_t phase = 1; phase <= rig.rounds(1200); ++phase) {
                for (auto& kick : to_all) kick.store(rig.self.value * 8, phase);
                Barrier& barrier = phase % 2 == 0 ? *fast : *tree;
                barrier.arrive();
                if (random.below(40) == 0) yield();
                barrier.wait();
                EXPECT_TRUE(barrier.passed());
                for (std::uint32_t peer = 0; peer < rig.nodes; ++peer) {
                    // Two nodes that the tree does not join: a packet between them may be slower
                    // than the barrier.
                    const bool joined = phase % 2 == 0 || peer == 0 || rig.self.value == 0;
                    if (!joined && !to_all[peer].is_mapped()) continue;
                    const auto seen = node.board->load<std::uint64_t>(marks + peer * 8);
                    ASSERT_TRUE(seen == phase || seen == phase + 1) << seen << " in " << phase;
                }
                if (of_pair != nullptr && phase % 3 == 0) of_pair->arrive_and_wait();
            }
            rig.meet();
        });
    });
}

template <class T>
void sums_and_more(AllReduce<T>& reduce, std::uint32_t rank, std::uint32_t nodes) {
    const T mine = static_cast<T>(rank + 1);
    EXPECT_EQ(reduce(mine), static_cast<T>(nodes * (nodes + 1) / 2));
    EXPECT_EQ(reduce(mine, [](T a, T b) { return std::min(a, b); }), T{1});
    EXPECT_EQ(reduce(mine, [](T a, T b) { return std::max(a, b); }), static_cast<T>(nodes));
    EXPECT_EQ(reduce(mine, std::multiplies<>{}), static_cast<T>(nodes == 1   ? 1
                                                                : nodes == 2 ? 2
                                                                             : 24));
}

TEST_P(KickFace, reductions_and_broadcasts_give_all_the_same_bits) {
    run([](Rig& rig) {
        on_kicks(rig, [&](FaceOfKicks& node) {
            Board& board = *node.board;
            struct Wide {
                std::uint64_t low, high;
            };
            auto chars = board.all_reduce<signed char>();
            auto ints = board.all_reduce<unsigned>({}, Shape::tree);
            auto longs = board.all_reduce<long long>();
            auto floats = board.all_reduce<float>();
            auto doubles = board.all_reduce<double>({}, Shape::tree);
            auto quads = board.all_reduce<long double>();
            auto wides = board.all_reduce<Wide>();
            auto broadcast = board.broadcast<Wide>();
            node.connect();
            const std::uint32_t rank = rig.self.value;
            sums_and_more(*chars, rank, rig.nodes);
            sums_and_more(*ints, rank, rig.nodes);
            sums_and_more(*longs, rank, rig.nodes);
            sums_and_more(*floats, rank, rig.nodes);
            sums_and_more(*doubles, rank, rig.nodes);
            sums_and_more(*quads, rank, rig.nodes);
            const Wide sum = (*wides)(Wide{rank, 10 * rank}, [](const Wide& a, const Wide& b) {
                return Wide{a.low + b.low, a.high + b.high};
            });
            EXPECT_EQ(sum.high, 10 * sum.low);
            for (std::uint32_t round = 0; round < 50; ++round) {
                const std::uint32_t root = round % rig.nodes;
                const Wide mine = rank == root ? Wide{round, round + 1ull} : Wide{~0ull, ~0ull};
                const Wide all = (*broadcast)(mine, root);
                EXPECT_EQ(all.low, round);
                EXPECT_EQ(all.high, round + 1);
            }
            rig.meet();
        });
    });
}

TEST_P(KickFace, a_channel_keeps_order_when_it_is_full_and_when_it_is_empty) {
    run([](Rig& rig) {
        on_kicks(rig, [&](FaceOfKicks& node) {
            auto ring = *node.board->channel<std::uint64_t>(node.next, node.before);
            auto small = *node.board->channel<char>(node.next, node.before);
            node.connect();
            std::uint64_t filled = 0;
            while (ring.try_stream(filled)) ++filled;
            EXPECT_EQ(filled, ring.capacity);
            rig.meet();
            ring.flush();
            for (std::uint64_t i = 0; i < filled; ++i) ASSERT_EQ(ring.receive(), i);
            EXPECT_FALSE(ring.try_receive());
            rig.meet();
            for (std::uint64_t i = 0; i < rig.rounds(20'000); ++i) {
                // Each sends before it receives, so that no node waits for a ring that no node
                // empties.
                if (i % 3 == 0) {
                    ring.send(i);
                } else {
                    ring.stream(i);
                    ring.flush();
                }
                if (i % 64 == 0) small.send(static_cast<char>(i / 64));
                ASSERT_EQ(ring.receive(), i);
                if (i % 64 == 0) {
                    ASSERT_EQ(small.receive(), static_cast<char>(i / 64));
                }
            }
            rig.meet();
        });
    });
}

}  // namespace
}  // namespace hiroba::conformance
