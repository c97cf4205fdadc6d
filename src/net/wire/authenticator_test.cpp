// SPDX-License-Identifier: BSD-3-Clause
// Role: the parts of a datagram are hashed as defined; the authenticator depends on every bit of a
// datagram, of its length and of its keys.
#include "net/wire/authenticator.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <span>
#include <vector>

namespace hiroba::net::wire {
namespace {

constexpr HashKey job{0x0706'0504'0302'0100u, 0x0f0e'0d0c'0b0a'0908u};
const PartKey parts = part_key(job);

std::vector<std::byte> some_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 251);
    return bytes;
}

/// The 128 bits of a product, digit by digit of 32 bits, added to `sum`.
void add_product(std::uint64_t a, std::uint64_t b, std::uint32_t sum[4]) {
    const std::uint64_t digits_a[] = {a & 0xffff'ffff, a >> 32},
                        digits_b[] = {b & 0xffff'ffff, b >> 32};
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
            const std::uint64_t product = digits_a[i] * digits_b[j];
            std::uint64_t carry = product;
            for (int digit = i + j; digit < 4; ++digit) {
                carry += sum[digit];  // below 2^64: a digit, a carry of one and a product
                sum[digit] = static_cast<std::uint32_t>(carry);
                carry >>= 32;
            }
        }
    }
}

PartHash hash_by_definition(const PartKey& key, Bytes part) {
    std::vector<std::byte> bytes(part.begin(), part.end());
    bytes.resize((bytes.size() + 15) / 16 * 16);
    std::uint32_t sum[4] = {};
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        std::uint64_t words[2];
        std::memcpy(words, bytes.data() + at, 16);
        add_product(words[0] + key[at / 8], words[1] + key[at / 8 + 1], sum);
    }
    return {sum[0] | std::uint64_t{sum[1]} << 32, sum[2] | std::uint64_t{sum[3]} << 32};
}

TEST(Authenticator, hashes_parts_as_defined) {
    for (const std::size_t size :
         {0u, 1u, 8u, 15u, 16u, 17u, 63u, 64u, 65u, 80u, 127u, 1008u, 1009u, 1023u, 1024u}) {
        // Not aligned, as datagrams in a batch are not.
        const auto bytes = some_bytes(size + 1);
        const Bytes part = Bytes{bytes}.subspan(1);
        EXPECT_EQ(part_hash(parts, part), hash_by_definition(parts, part)) << size;
    }
}

TEST(Authenticator, hashes_parts_of_ones_as_defined) {
    PartKey key;
    key.fill(~std::uint64_t{0});
    const std::vector<std::byte> zeros(hashed_part_bytes), ones(hashed_part_bytes, std::byte{0xff});
    EXPECT_EQ(part_hash(key, zeros), hash_by_definition(key, zeros));
    EXPECT_EQ(part_hash(key, ones), hash_by_definition(key, ones));
}

TEST(Authenticator, is_siphash_of_the_beginning_the_parts_and_the_length) {
    const DirectionKey key = direction_key(job, parts, 1, 2);
    const auto bytes = some_bytes(whole_bytes + hashed_part_bytes + 100);
    std::vector<std::uint64_t> words(whole_bytes / 8);
    std::memcpy(words.data(), bytes.data(), whole_bytes);
    for (const auto& [at, size] : {std::pair{whole_bytes, hashed_part_bytes},
                                   std::pair{whole_bytes + hashed_part_bytes, std::size_t{100}}}) {
        const PartHash part = hash_by_definition(parts, Bytes{bytes}.subspan(at, size));
        words.push_back(part.low);
        words.push_back(part.high);
    }
    SipHash hash{key.joint};
    for (const std::uint64_t word : words) hash.absorb(word);
    EXPECT_EQ(authenticator(key, bytes), hash.finish(bytes.size()));
    const Bytes small = Bytes{bytes}.first(small_bytes_max);
    EXPECT_EQ(authenticator(key, small), siphash(key.small, small));
}

TEST(Authenticator, differs_with_each_bit_and_each_length) {
    const DirectionKey key = direction_key(job, parts, 1, 2);
    for (const std::size_t size :
         {std::size_t{40}, small_bytes_max, small_bytes_max + 1, whole_bytes + hashed_part_bytes,
          whole_bytes + hashed_part_bytes + 1, whole_bytes + 2 * hashed_part_bytes + 77}) {
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

// What adds up to the same sum, but for the key: words, pairs and parts that change places.
TEST(Authenticator, differs_with_the_order) {
    const DirectionKey key = direction_key(job, parts, 1, 2);
    const auto bytes = some_bytes(whole_bytes + 3 * hashed_part_bytes);
    std::set<std::uint64_t> seen{authenticator(key, bytes)};
    for (const std::size_t unit : {std::size_t{8}, std::size_t{16}, hashed_part_bytes}) {
        for (std::size_t at = whole_bytes; at + 2 * unit <= bytes.size(); at += unit) {
            auto changed = bytes;
            std::swap_ranges(changed.begin() + static_cast<std::ptrdiff_t>(at),
                             changed.begin() + static_cast<std::ptrdiff_t>(at + unit),
                             changed.begin() + static_cast<std::ptrdiff_t>(at + unit));
            ASSERT_NE(changed, bytes);
            EXPECT_TRUE(seen.insert(authenticator(key, changed)).second) << unit << " at " << at;
        }
    }
}

TEST(Authenticator, has_keys_of_their_own_for_each_direction_and_part) {
    const HashKey other_job{job.low, job.high + 1};
    const PartKey other_parts = part_key(other_job);
    const DirectionKey there = direction_key(job, parts, 1, 2),
                       back = direction_key(job, parts, 2, 1);
    std::set<std::uint64_t> words;
    for (const DirectionKey& key : {there, back, direction_key(other_job, other_parts, 1, 2)}) {
        for (const HashKey& part : {key.small, key.joint}) {
            words.insert(part.low);
            words.insert(part.high);
        }
    }
    words.insert(parts.begin(), parts.end());
    words.insert(other_parts.begin(), other_parts.end());
    EXPECT_EQ(words.size(), 12 + 2 * parts.size());
    EXPECT_EQ(there.small, small_key(job, 1, 2));
    for (const std::size_t size : {100, 4096}) {
        const auto bytes = some_bytes(size);
        EXPECT_NE(authenticator(there, bytes), authenticator(back, bytes));
    }
    // With the keys of the direction alike, those of the parts count.
    const auto bytes = some_bytes(4096);
    EXPECT_NE(authenticator(there, bytes),
              authenticator({there.small, there.joint, &other_parts}, bytes));
}

}  // namespace
}  // namespace hiroba::net::wire
