// SPDX-License-Identifier: BSD-3-Clause
// Role: the two queues of blocks on their way home.
#include "dsm/heap/remote_frees.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace hiroba::dsm {
namespace {

TEST(RemoteFrees, a_batch_holds_what_was_added_before_it_was_sealed) {
    OutgoingFrees frees;
    EXPECT_TRUE(frees.empty());
    for (std::uintptr_t i = 0; i < 20'000; ++i) frees.add(i);
    const auto sealed = frees.seal();
    EXPECT_TRUE(frees.empty());
    frees.add(77);
    ASSERT_EQ(sealed.size(), 20'000u);
    for (std::uintptr_t i = 0; i < 20'000; ++i) ASSERT_EQ(sealed[i], i);
    const auto rest = frees.seal();
    ASSERT_EQ(rest.size(), 1u);
    EXPECT_EQ(rest[0], 77u);
}

std::vector<std::byte> message(std::string_view news, std::vector<std::uintptr_t> addresses) {
    const RemoteFreeHeader header{static_cast<std::uint32_t>(news.size()),
                                  static_cast<std::uint32_t>(addresses.size())};
    const std::size_t front = sizeof header + round_up(news.size(), 8);
    std::vector<std::byte> bytes(front + addresses.size() * 8);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, news.data(), news.size());
    if (!addresses.empty())
        std::memcpy(bytes.data() + front, addresses.data(), addresses.size() * 8);
    return bytes;
}

TEST(RemoteFrees, messages_come_out_whole_and_in_order) {
    ArrivedFrees arrived;
    arrived.add(NodeId{3}, message("odd", {0x10, 0x20}));
    arrived.add(NodeId{1}, message("", {0x30}));
    arrived.take();
    arrived.add(NodeId{2}, message("later", {}));
    for (int pass = 0; pass < 2; ++pass, arrived.rewind()) {
        auto batch = arrived.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(batch->from, NodeId{3});
        EXPECT_EQ(std::memcmp(batch->news.data(), "odd", 3), 0);
        EXPECT_EQ(batch->news.size(), 3u);
        ASSERT_EQ(batch->addresses.size(), 2u);
        EXPECT_EQ(batch->addresses[1], 0x20u);
        batch = arrived.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(batch->from, NodeId{1});
        EXPECT_TRUE(batch->news.empty());
        EXPECT_FALSE(arrived.next());
    }
    EXPECT_FALSE(arrived.empty());
    arrived.take();
    EXPECT_EQ(arrived.next()->from, NodeId{2});
    EXPECT_DEATH(arrived.add(NodeId{2}, Bytes{message("x", {1})}.first(20)), "remote free of 20");
}

}  // namespace
}  // namespace hiroba::dsm
