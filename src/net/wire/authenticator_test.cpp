// SPDX-License-Identifier: BSD-3-Clause
// Role: the lanes are SipHashes of their words in every version; the authenticator depends on every
// bit of a datagram and of its length.
#include "net/wire/authenticator.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <span>
#include <vector>

namespace hiroba::net::wire {
namespace {

constexpr HashKey job{0x0706'0504'0302'0100u, 0x0f0e'0d0c'0b0a'0908u};

std::vector<std::byte> some_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 251);
    return bytes;
}

/// The definition, by the function of siphash.hpp.
LaneHashes hashes_by_definition(const HashKey& key, Bytes stripes) {
    LaneHashes hashes;
    for (std::size_t lane = 0; lane < lanes_count; ++lane) {
        std::vector<std::uint64_t> message{lane};
        for (std::size_t at = 8 * lane; at < stripes.size(); at += stripe_bytes) {
            message.push_back(0);
            std::memcpy(&message.back(), stripes.data() + at, 8);
        }
        hashes[lane] = siphash(key, std::as_bytes(std::span(message)));
    }
    return hashes;
}

TEST(Authenticator, hashes_each_lane_alike_in_every_version) {
    for (const std::size_t stripes : {0, 1, 2, 8, 31, 32, 128}) {
        // Not aligned, as datagrams in a batch are not.
        const auto bytes = some_bytes(stripes * stripe_bytes + 1);
        const Bytes whole = Bytes{bytes}.subspan(1);
        const LaneHashes wanted = hashes_by_definition(job, whole);
        LaneHashes found{};
        hash_lanes_portable(job, whole.data(), stripes, found);
        EXPECT_EQ(found, wanted) << stripes;
        if (__builtin_cpu_supports("avx2")) {
            found = {};
            hash_lanes_avx2(job, whole.data(), stripes, found);
            EXPECT_EQ(found, wanted) << stripes;
        }
        if (__builtin_cpu_supports("avx512f")) {
            found = {};
            hash_lanes_avx512(job, whole.data(), stripes, found);
            EXPECT_EQ(found, wanted) << stripes;
        }
    }
}

TEST(Authenticator, differs_with_each_bit_and_each_length) {
    const DirectionKey key = direction_key(job, 1, 2);
    for (const std::size_t size : {std::size_t{40}, lanes_bytes_min - 1, lanes_bytes_min,
                                   lanes_bytes_min + 1, lanes_bytes_min + stripe_bytes + 77}) {
        auto bytes = some_bytes(size);
        std::set<std::uint64_t> seen{authenticator(key, bytes)};
        for (std::size_t bit = 0; bit < 8 * size; ++bit) {
            bytes[bit / 8] ^= std::byte{1} << bit % 8;
            EXPECT_TRUE(seen.insert(authenticator(key, bytes)).second) << bit << " of " << size;
            bytes[bit / 8] ^= std::byte{1} << bit % 8;
        }
        for (std::size_t shorter = size - 40; shorter < size; ++shorter) {
            EXPECT_TRUE(seen.insert(authenticator(key, Bytes{bytes}.first(shorter))).second);
        }
        bytes.push_back(std::byte{0});
        EXPECT_TRUE(seen.insert(authenticator(key, bytes)).second) << size;
    }
}

TEST(Authenticator, has_keys_of_their_own_for_each_direction_and_part) {
    const DirectionKey there = direction_key(job, 1, 2), back = direction_key(job, 2, 1);
    std::set<std::uint64_t> words;
    for (const DirectionKey& key : {there, back, direction_key({job.low, job.high + 1}, 1, 2)}) {
        for (const HashKey& part : {key.small, key.lanes, key.joint}) {
            words.insert(part.low);
            words.insert(part.high);
        }
    }
    EXPECT_EQ(words.size(), 18u);
    for (const std::size_t size : {100, 4096}) {
        const auto bytes = some_bytes(size);
        EXPECT_NE(authenticator(there, bytes), authenticator(back, bytes));
    }
}

}  // namespace
}  // namespace hiroba::net::wire
