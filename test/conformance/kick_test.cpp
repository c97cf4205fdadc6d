// SPDX-License-Identifier: BSD-3-Clause
// Role: kicks and what is built of them between real processes, over each provider as it is and as
// if it mapped nothing.
#include "net/kick/kick.hpp"

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "conformance/async_node.hpp"
#include "conformance/both_ways.hpp"

namespace hiroba::conformance {
namespace {

using namespace net::kick;
using net::Endpoint;

HIROBA_CONFORMANCE(Kicks);

constexpr std::uint64_t job_key = 7;

/// A node with a board. Parts of the LLCM are reserved before connect().
struct Node {
    Node(Rig& rig, bool mapped) {
        endpoint = open_mapped(rig, mapped, job_key);
        board = need(Board::create(*endpoint, job_key));
    }
    void connect() {
        need(endpoint->connect());
        board->attach();
    }
    std::unique_ptr<Endpoint> endpoint;
    std::unique_ptr<Board> board;
};

TEST_P(Kicks, of_1_2_4_and_8_bytes_land_in_order_where_the_address_says) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            const Offset place = need(node.board->reserve(page_bytes, page_bytes));
            node.connect();
            const Target target = need(node.board->target(rig.next(), place));
            auto ones = need(node.board->kick<std::uint8_t>(target));
            auto twos = need(node.board->kick<std::uint16_t>(target));
            auto fours = need(node.board->kick<float>(target));
            auto eights = need(node.board->kick<double>(target));
            auto last = need(node.board->kick<std::uint64_t>(target));
            const bool reached = node.board->at(rig.next(), place) != nullptr;
            EXPECT_EQ(ones.is_mapped(), reached || rig.nodes == 1);
            ones.store(3, 0x5a);
            twos.store(6, 0xbeef);
            fours.store(12, 1.5f);
            eights.store(4088, -2.25);
            for (std::uint64_t i = 1; i <= 1000; ++i) last.store(64, i);
            node.board->wake(rig.next());
            expect_kicks_of_each_width(*node.board, place);
            EXPECT_EQ(node.board->load<std::uint64_t>(place + 8) & 0xffffffff, 0u);
            rig.meet();
        });
    });
}

TEST_P(Kicks, cannot_leave_their_page_and_the_checked_form_says_why) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            const net::RegionId odd = need(node.endpoint->provider().allocate(page_bytes + 100));
            node.board->expose(odd, page_bytes + 100);
            need(node.board->reserve(page_bytes, page_bytes));
            const Offset place = need(node.board->reserve(page_bytes, page_bytes));
            need(node.board->reserve(page_bytes, page_bytes));
            node.connect();
            auto kick =
                need(node.board->kick<std::uint64_t>(need(node.board->target(rig.next(), place))));
            const auto says = [](const Result<void>& result, const char* what) {
                return !result && result.error().text.find(what) != std::string::npos;
            };
            EXPECT_TRUE(says(kick.store_checked(4096, 1), "does not lie inside"));
            EXPECT_TRUE(says(kick.store_checked(4092, 1), "not aligned"));
            EXPECT_TRUE(says(kick.store_checked(~0u - 7, 1), "does not lie inside"));
            EXPECT_TRUE(kick.store_checked(4088, 1));
            auto end = need(node.board->kick<std::uint64_t>(
                need(node.board->target(rig.next(), odd, page_bytes))));
            EXPECT_TRUE(end.store_checked(88, 1));
            EXPECT_TRUE(says(end.store_checked(96, 1), "of a page with 100"));
#ifdef NDEBUG
            kick.store(4096 + 16, 77);  // the low 12 bits count
            kick.store(4095, 78);       // and of them what is aligned
            node.board->wake(rig.next());
            node.board->wait_until<std::uint64_t>(place + 4088,
                                                  [](std::uint64_t v) { return v == 78; });
            EXPECT_EQ(node.board->load<std::uint64_t>(place + 16), 77u);
            for (const Offset other : {place - page_bytes, place + page_bytes}) {
                const std::byte* const page = node.board->at(other);
                EXPECT_EQ(std::count(page, page + page_bytes, std::byte{0}),
                          static_cast<long>(page_bytes));
            }
#else
            node.board->wake(rig.next());
#endif
            rig.meet();
        });
    });
}

TEST_P(Kicks, after_a_put_land_when_its_bytes_are_visible) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            // Larger than a simulated thread's stack.
            const auto made =
                std::make_unique<net::Async>(*node.endpoint, net::Async::mode_of_setting());
            net::Async& async = *made;
            constexpr std::size_t bytes = 20'000;  // several packets, in any order
            const net::Handle memory = *async.allocate(2 * bytes);
            const Offset place = need(node.board->reserve(64));
            node.connect();
            async.attach();
            Thread service{[&] { node.endpoint->serve(); }};
            auto kick =
                need(node.board->kick<std::uint32_t>(need(node.board->target(rig.next(), place))));
            KickAfter<std::uint32_t> flag{kick};
            std::byte* const local = async.local(memory).data();
            for (std::uint32_t round = 1; round <= (rig.storm ? 10u : 100u); ++round) {
                std::memset(local + bytes, static_cast<int>(round), bytes);
                until_accepted([&] {
                    return async.try_write({rig.next(),
                                            {memory, bytes},
                                            {memory, 0},
                                            bytes,
                                            flag.callback(place % page_bytes, round)});
                });
                node.board->wait_until<std::uint32_t>(
                    place, [round](std::uint32_t seen) { return seen == round; });
                EXPECT_EQ(count_of(static_cast<std::byte>(round), {local, bytes}), bytes);
                node.endpoint->wait_until([&] { return flag.over(); });
                EXPECT_FALSE(flag.failed());
                rig.meet();
            }
            node.endpoint->stop();
            service.join();
        });
    });
}

TEST_P(Kicks, refuse_targets_that_nobody_registered) {
    run([](Rig& rig) {
        Node node{rig, true};
        const net::RegionId hidden = need(node.endpoint->provider().allocate(page_bytes));
        node.connect();
        EXPECT_FALSE(node.board->kick<int>(Target{}));
        EXPECT_FALSE(node.board->target(NodeId{rig.nodes}, 0));
        EXPECT_FALSE(node.board->target(rig.next(), hidden, 0));
        EXPECT_FALSE(node.board->reserve(std::size_t{1} << 20));
        EXPECT_EQ(node.board->header_counts().misses, 0u);
        const Target target = need(node.board->target(rig.next(), 0));
        need(node.board->kick<int>(target));
        need(node.board->kick<char>(target));
        EXPECT_EQ(node.board->header_counts().misses, 1u);
        EXPECT_EQ(node.board->header_counts().hits, 1u);
        rig.meet();
    });
}

TEST_P(Kicks, with_a_foreign_stamp_are_counted_and_not_written) {
    run([](Rig& rig) {
        Node node{rig, false};
        const Offset place = need(node.board->reserve(64));
        const net::RegionId hidden = need(node.endpoint->provider().allocate(page_bytes));
        node.connect();
        const std::uint32_t to = rig.next().value, region = node.board->llcm().value;
        const std::uint64_t bytes = Board::llcm_bytes_default;
        const net::wire::Landing bad[] = {{job_key + 1, to, region, place},
                                          {job_key, to + 1, region, place},
                                          {job_key, to, hidden.value, 0},
                                          {job_key, to, region, bytes - 4},
                                          {job_key, to, region, ~std::uint64_t{0} - 3}};
        const std::uint64_t value = ~std::uint64_t{0};
        const Bytes payload = std::as_bytes(std::span{&value, 1});
        for (const net::wire::Landing& each : bad) {
            net::wire::LandingBytes header = net::wire::encode_landing(each);
            node.board->post(rig.next(), header, each.offset, payload);
        }
        net::wire::LandingBytes good = net::wire::encode_landing({job_key, to, region, place + 8});
        node.board->post(rig.next(), good, place + 8, payload);
        node.board->wait_until<std::uint64_t>(place + 8, [](std::uint64_t v) { return v != 0; });
        EXPECT_EQ(node.board->refused(), std::size(bad));
        EXPECT_EQ(node.board->load<std::uint64_t>(place), 0u);
        EXPECT_EQ(*node.endpoint->provider().local(hidden).data(), std::byte{0});
        rig.meet();
    });
}

TEST_P(Kicks, windows_carry_blocks_and_refuse_reuse_in_flight) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            EXPECT_FALSE(WindowPlace::reserve(*node.board, 0));
            EXPECT_FALSE(WindowPlace::reserve(*node.board, 1441));
            std::vector<WindowPlace> places;
            for (int i = 0; i < 64; ++i)
                places.push_back(need(WindowPlace::reserve(*node.board, 464)));
            node.connect();
            const NodeId before{(rig.self.value + rig.nodes - 1) % rig.nodes};
            std::vector<Window> windows;
            std::vector<Landed> landed;
            for (const WindowPlace& place : places) {
                windows.push_back(need(Window::open(*node.board, place, rig.next())));
                landed.push_back(need(Landed::open(*node.board, place, before)));
            }
            for (unsigned round = 0; round < (rig.storm ? 4u : 20u); ++round) {
                for (unsigned w = 0; w < windows.size(); ++w) {
                    const std::uint32_t bytes = (round * 131 + w * 17) % 465;
                    windows[w].await_room();
                    std::memset(windows[w].payload().data(), static_cast<int>(round + w), bytes);
                    EXPECT_FALSE(windows[w].send(465));
                    EXPECT_TRUE(windows[w].send(bytes));
                }
                // No node takes before all have tried to send again.
                rig.meet();
                EXPECT_FALSE(windows[round].may_overwrite());
                const auto again = windows[round].send(1);
                ASSERT_FALSE(again);
                EXPECT_NE(again.error().text.find("is in flight"), std::string::npos);
                rig.meet();
                for (unsigned w = 0; w < landed.size(); ++w) {
                    node.board->wait_for([&] { return landed[w].arrived(); });
                    const Bytes bytes = landed[w].bytes();
                    EXPECT_EQ(bytes.size(), (round * 131 + w * 17) % 465);
                    EXPECT_EQ(
                        std::count(bytes.begin(), bytes.end(), static_cast<std::byte>(round + w)),
                        static_cast<long>(bytes.size()));
                    landed[w].take();
                }
            }
            rig.meet();
        });
    });
}

TEST_P(Kicks, a_sender_that_sleeps_until_its_window_is_free_is_woken) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            const WindowPlace place = need(WindowPlace::reserve(*node.board, 8));
            node.connect();
            if (rig.self.value < 2 && rig.nodes > 1) {
                const NodeId other{1 - rig.self.value};
                auto window = need(Window::open(*node.board, place, other));
                auto landed = need(Landed::open(*node.board, place, other));
                constexpr std::uint64_t rounds = 40, safety_net_ns = 100'000'000;
                const std::uint64_t begun_ns = now_ns();
                for (std::uint64_t round = 0; round < rounds; ++round) {
                    if (rig.self.value == 0) {
                        window.await_room();
                        EXPECT_TRUE(window.send(8));
                        continue;
                    }
                    node.board->wait_for([&] { return landed.arrived(); });
                    // Longer than a waiter stays awake.
                    node.endpoint->wait_until([] { return false; }, now_ns() + 3'000'000);
                    landed.take();
                }
                const std::uint64_t spent_ns = now_ns() - begun_ns;
                EXPECT_TRUE(rig.storm || spent_ns < rounds / 2 * safety_net_ns) << spent_ns;
            }
            rig.meet();
        });
    });
}

TEST_P(Kicks, groups_that_are_none_are_refused_with_the_node_that_is_wrong) {
    run([](Rig& rig) {
        Node node{rig, true};
        const Offset place = need(Barrier::reserve(*node.board));
        node.connect();
        const auto says = [&](const Group& group, Shape shape, const char* what) {
            const auto opened = Barrier::open(*node.board, place, group, shape);
            return !opened && opened.error().text.find(what) != std::string::npos;
        };
        const NodeId self = rig.self, outside{rig.nodes};
        for (const Shape shape : {Shape::tree, Shape::all_to_all}) {
            EXPECT_TRUE(says({self, outside}, shape, "is not in the job"));
            EXPECT_TRUE(says({self, self}, shape, "is a member twice"));
            EXPECT_TRUE(says({}, shape, "is no member"));
        }
        EXPECT_TRUE(says(Group(9, self), Shape::all_to_all, "at most 8 can all kick all"));
        rig.meet();
    });
}

template <class T>
void reduce_every_way(Board& board, Offset place, const Group& group, Shape shape) {
    auto reduce = need(AllReduce<T>::open(board, place, group, shape));
    const auto nodes = static_cast<int>(group.size());
    const T mine = static_cast<T>(board.self().value + 1);
    EXPECT_EQ(reduce(mine, op::Sum{}), static_cast<T>(nodes * (nodes + 1) / 2));
    EXPECT_EQ(reduce(mine, op::Min{}), static_cast<T>(1));
    EXPECT_EQ(reduce(mine, op::Max{}), static_cast<T>(nodes));
    EXPECT_EQ(reduce(mine, [](T a, T b) { return a * b; }), static_cast<T>(nodes == 1   ? 1
                                                                           : nodes == 2 ? 2
                                                                                        : 24));
    if constexpr (std::is_integral_v<T>) {
        EXPECT_EQ(reduce(mine, op::Or{}), static_cast<T>(nodes == 1 ? 1 : nodes == 2 ? 3 : 7));
        EXPECT_EQ(reduce(mine, op::And{}), static_cast<T>(nodes == 1 ? 1 : 0));
        EXPECT_EQ(reduce(mine, op::Xor{}), static_cast<T>(nodes == 1 ? 1 : nodes == 2 ? 3 : 4));
    }
}

template <class... T>
void reduce_types(Node& node, const std::vector<Offset>& places) {
    std::size_t next = 0;
    const Group all = everyone(*node.endpoint);
    for (const Shape shape : {Shape::all_to_all, Shape::tree})
        (reduce_every_way<T>(*node.board, places[next++], all, shape), ...);
}

TEST_P(Kicks, all_reduce_combines_every_arithmetic_type_with_every_operation) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            std::vector<Offset> places;
            for (int i = 0; i < 32; ++i)
                places.push_back(need(AllReduce<long double>::reserve(*node.board)));
            node.connect();
            reduce_types<char, signed char, unsigned char, short, unsigned short, int, unsigned,
                         long, unsigned long, long long, unsigned long long, float, double,
                         long double>(node, places);
            rig.meet();
        });
    });
}

TEST_P(Kicks, a_broadcast_gives_the_roots_value_to_all) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            const Offset place = need(Broadcast<double>::reserve(*node.board));
            node.connect();
            auto broadcast =
                need(Broadcast<double>::open(*node.board, place, everyone(*node.endpoint)));
            for (std::uint32_t round = 0; round < 50; ++round) {
                const std::uint32_t root = round % rig.nodes;
                const double mine = rig.self.value == root ? -1.25 * round : 99;
                EXPECT_EQ(broadcast(mine, root), -1.25 * round);
            }
            rig.meet();
        });
    });
}

}  // namespace
}  // namespace hiroba::conformance
