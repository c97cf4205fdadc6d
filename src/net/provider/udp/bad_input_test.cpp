// SPDX-License-Identifier: BSD-3-Clause
// Role: what a user can set wrong for this provider, and what a wrong peer can say while nodes
// meet: each is refused with a line that names the number and the setting, before anything is sent.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "net/provider/udp/udp_provider.hpp"

namespace hiroba::net::udp {
namespace {

/// A setting for as long as this lives.
class Given {
public:
    Given(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Given() { unsetenv(name_); }
    Given(const Given&) = delete;

private:
    const char* name_;
};

std::string why_not(Result<void> outcome, ErrorKind kind) {
    if (outcome) return "it was accepted";
    EXPECT_EQ(outcome.error().kind, kind) << outcome.error().text;
    return outcome.error().text;
}

TEST(UdpBadInput, in_a_setting_is_named_with_what_may_stand_there) {
    struct Case {
        const char *name, *value, *words;
    };
    const Case cases[] = {
        {"HIROBA_UDP_DATAGRAM", "511", "HIROBA_UDP_DATAGRAM=511: 512 to 16368 bytes"},
        {"HIROBA_UDP_DATAGRAM", "16369", "HIROBA_UDP_DATAGRAM=16369: 512 to 16368 bytes"},
        {"HIROBA_UDP_DATAGRAM", "1e3", "HIROBA_UDP_DATAGRAM=1e3: not a size"},
        {"HIROBA_UDP_LOSS", "101", "HIROBA_UDP_LOSS=101: a percentage, at most 100"},
        {"HIROBA_UDP_DUPLICATE", "200", "HIROBA_UDP_DUPLICATE=200: a percentage"},
        {"HIROBA_UDP_REORDER", "-1", "HIROBA_UDP_REORDER=-1: not a size"},
        {"HIROBA_UDP_DELAY", "soon", "HIROBA_UDP_DELAY=soon: not a size"},
        {"HIROBA_UDP_SEED", "seed", "HIROBA_UDP_SEED=seed: not a size"},
        {"HIROBA_PEER_TIMEOUT", "never", "HIROBA_PEER_TIMEOUT=never: not a size"},
    };
    for (const Case& each : cases) {
        const Given given{each.name, each.value};
        const auto made = make_udp_provider({.self = NodeId{0}, .nodes = 2, .exchange = {}});
        ASSERT_FALSE(made) << each.words;
        EXPECT_EQ(made.error().kind, ErrorKind::usage);
        EXPECT_EQ(made.error().text.rfind(each.words, 0), 0u) << made.error().text;
    }
}

TEST(UdpBadInput, a_rank_outside_the_job_is_refused) {
    const auto made = make_udp_provider({.self = NodeId{2}, .nodes = 2, .exchange = {}});
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().text.find("node 2: a job of 2 nodes has no such rank"),
              std::string::npos);
}

TEST(UdpBadInput, a_region_that_no_address_space_holds_is_refused) {
    UdpProvider node{{.self = NodeId{0}, .nodes = 1, .exchange = {}}, Weather{}, 0};
    const auto region = node.allocate(std::size_t{1} << 47);
    ASSERT_FALSE(region);
    EXPECT_NE(region.error().text.find("a region of 140737488355328 bytes"), std::string::npos);
    EXPECT_NE(region.error().text.find("HIROBA_HEAP"), std::string::npos);
}

TEST(UdpBadInput, a_network_that_this_host_has_not_is_refused) {
    for (const char* wanted : {"nosuch0", "192.0.2.77", "2001:db8::77", "256.1.1.1", "::1::"}) {
        const Given given{"HIROBA_NET", wanted};
        UdpProvider node{{.self = NodeId{0}, .nodes = 2, .exchange = {}}, Weather{}, 0};
        const std::string why = why_not(node.connect(), ErrorKind::usage);
        EXPECT_EQ(why, "HIROBA_NET=" + std::string(wanted) +
                           ": no interface of this host is up with that name or address");
    }
}

/// Node 0 of two meets a node 1 whose card is its own, changed by `change`; says why it refused.
std::string refused_meeting(const std::function<void(std::vector<std::byte>& card)>& change) {
    ProviderSetup setup{.self = NodeId{0}, .nodes = 2, .job_key = 7, .exchange = {}, .host = 5};
    setup.exchange = [&](Bytes mine, int) {
        ControlChannel::Gathered all;
        for (std::uint64_t rank = 0; rank < 2; ++rank) {
            all.bytes.emplace_back(mine.begin(), mine.end());
            std::memcpy(all.bytes.back().data() + offsetof(wire::AddressCard, node), &rank, 8);
        }
        change(all.bytes[1]);
        return Result<ControlChannel::Gathered>(std::move(all));
    };
    setup.network = "127.0.0.1";
    UdpProvider node{std::move(setup), Weather{}, 0};
    EXPECT_TRUE(node.allocate(4096));
    return why_not(node.connect(), ErrorKind::refused);
}

TEST(UdpBadInput, a_peer_that_differs_is_refused_with_the_number_that_differs) {
    const auto with = [](const std::function<void(wire::DatagramCard&)>& change) {
        return refused_meeting([&](std::vector<std::byte>& bytes) {
            wire::DatagramCard card;
            std::memcpy(static_cast<void*>(&card), bytes.data(), sizeof card);
            change(card);
            std::memcpy(bytes.data(), &card, sizeof card);
        });
    };
    struct Case {
        std::function<void(wire::DatagramCard&)> change;
        const char* words;
    };
    const Case cases[] = {
        {[](auto& card) { card.common.version = 99; }, "node 1 has layout version 99, here 1"},
        {[](auto& card) { card.common.job_key ^= 1; }, "node 1 has job key "},
        {[](auto& card) { card.common.nodes = 3; }, "node 1 has number of nodes 3, here 2"},
        {[](auto& card) { card.common.node = 0; }, "node 1 has rank 0, here 1"},
        {[](auto& card) { card.common.regions = 2; }, "node 1 has regions 2, here 1"},
        {[](auto& card) { card.family = 6; },
         "node 1 has an IPv6 address, here IPv4; set HIROBA_NET"},
        {[](auto& card) { card.encrypts = 1; },
         "node 1 has HIROBA_ENCRYPT=on, here off; set it where the job is started"},
        {[](auto& card) { card.host = 6; },
         "node 1 is on another host and gave a loopback address; set HIROBA_NET"},
    };
    for (const Case& each : cases) {
        const std::string why = with(each.change);
        EXPECT_NE(why.find(each.words), std::string::npos) << why << ", wanted " << each.words;
    }
    EXPECT_NE(refused_meeting([](auto& bytes) {
                  bytes.resize(3);
              }).find("node 1 sent 3 bytes instead of its address"),
              std::string::npos);
}

TEST(UdpBadInputDeathTest, of_a_caller_stops_the_node_with_the_numbers) {
    UdpProvider node{{.self = NodeId{0}, .nodes = 1, .exchange = {}}, Weather{}, 0};
    ASSERT_TRUE(node.allocate(4096));
    ASSERT_TRUE(node.connect());
    std::uint64_t word = 0;
    const MutableBytes bytes = std::as_writable_bytes(std::span(&word, 1));
    const std::vector<std::byte> long_body((std::size_t{64} << 10) + 1);
    const Bytes parts[] = {Bytes{long_body}};
    EXPECT_DEATH(node.put(OpId{1}, NodeId{1}, RegionId{0}, 0, bytes), "node 1 of 1 connected");
    EXPECT_DEATH(node.put(OpId{1}, NodeId{0}, RegionId{1}, 0, bytes), "region 1 of 1");
    EXPECT_DEATH(node.get(OpId{1}, bytes, NodeId{0}, RegionId{0}, 4089),
                 "8 bytes at offset 4089 of region 0, which has 4096");
    EXPECT_DEATH(node.get(OpId{1}, bytes, NodeId{0}, RegionId{0}, ~0ull), "which has 4096");
    EXPECT_DEATH(node.atomic(OpId{1}, AtomicOp::swap, NodeId{0}, RegionId{0}, 4, 1, 0, &word),
                 "atomic at offset 4 of region 0");
    EXPECT_DEATH(node.send(NodeId{0}, MessageKind::test, Urgency::when_polled, parts),
                 "message of 65537 bytes; at most 65536");
    EXPECT_DEATH(static_cast<void>(node.allocate(1)), "allocated after connect");
    EXPECT_DEATH(static_cast<void>(node.connect()), "connect\\(\\) called twice");
}

}  // namespace
}  // namespace hiroba::net::udp
