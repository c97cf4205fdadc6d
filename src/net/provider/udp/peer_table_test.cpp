// SPDX-License-Identifier: BSD-3-Clause
#include "net/provider/udp/peer_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace hiroba::net::udp {
namespace {

Address address_of(std::uint32_t host, std::uint16_t port, std::uint32_t scope = 0) {
    Address address;
    address.family = 4;
    address.port = port;
    address.scope = scope;
    address.bytes[0] = 10;
    address.bytes[3] = static_cast<std::uint8_t>(host);
    return address;
}

void expect_equal(const Address& found, const Address& wanted, std::uint32_t rank) {
    EXPECT_EQ(found.port, wanted.port) << rank;
    EXPECT_EQ(found.scope, wanted.scope) << rank;
    EXPECT_EQ(found.family, wanted.family) << rank;
    EXPECT_TRUE(std::equal(found.bytes, std::end(found.bytes), wanted.bytes)) << rank;
}

TEST(PeerTable, GivesBackEveryAddressHoweverRanksArePlaced) {
    constexpr std::uint32_t nodes = 200;
    // All on one host; blocks; one after the other; and two networks with equal addresses.
    const std::function<Address(std::uint32_t)> placements[] = {
        [](std::uint32_t rank) { return address_of(1, static_cast<std::uint16_t>(rank)); },
        [](std::uint32_t rank) {
            return address_of(rank / 7, static_cast<std::uint16_t>(rank % 7));
        },
        [](std::uint32_t rank) { return address_of(rank % 13, static_cast<std::uint16_t>(rank)); },
        [](std::uint32_t rank) { return address_of(1, 5, rank % 2); },
    };
    for (const auto& place : placements) {
        PeerTable table;
        ASSERT_TRUE(table.open(nodes));
        for (std::uint32_t rank = 0; rank < nodes; ++rank) table.set(rank, place(rank), ~rank);
        table.complete();
        for (std::uint32_t rank = 0; rank < nodes; ++rank) {
            expect_equal(table.address(rank), place(rank), rank);
            EXPECT_EQ(table.drawn(rank), ~rank);
            EXPECT_EQ(table[rank], nullptr);
        }
    }
}

}  // namespace
}  // namespace hiroba::net::udp
