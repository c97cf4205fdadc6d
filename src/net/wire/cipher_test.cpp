// SPDX-License-Identifier: BSD-3-Clause
// Role: what is sealed opens, as published; what was altered anywhere does not; nothing is
// allocated on the way, no number comes twice, and the library stays out of the program's sight.
#include "net/wire/cipher.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "net/wire/crypto_library.hpp"
#include "net/wire/crypto_memory.hpp"
#include "net/wire/datagram_samples.hpp"

namespace hiroba::net::wire {
namespace {

using Octets = std::vector<std::byte>;
constexpr HashKey job{0x0706'0504'0302'0100u, 0x0f0e'0d0c'0b0a'0908u};

/// One direction, both ends of it.
struct Direction {
    explicit Direction(CipherKind kind, const CipherKey& key = {}) {
        seal.begin(kind, true);
        seal.set_key(key);
        open.begin(kind, false);
        open.set_key(key);
    }
    ~Direction() {
        seal.close();
        open.close();
    }
    Octets sealed(Bytes header, Bytes body) {
        Octets all(body.size() + tag_bytes);
        seal.seal(header, body, all.data());
        return all;
    }
    bool opens(std::uint64_t number, Bytes header, Octets& sealed) {
        const MutableBytes body{sealed.data(), sealed.size() - tag_bytes};
        return open.open(number, header, body, sealed.data() + body.size());
    }
    DirectionCipher seal, open;
};

class Cipher : public testing::TestWithParam<CipherKind> {
protected:
    void SetUp() override {
        const auto opened = keys.open(job);
        if (!opened) GTEST_SKIP() << opened.error().text;
    }
    CipherKeys keys;
};

Octets some_bytes(std::size_t count) {
    Octets bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 251);
    return bytes;
}

std::string digits(Bytes bytes) {
    std::string text;
    for (const std::byte each : bytes) {
        text += "0123456789abcdef"[static_cast<unsigned>(each) >> 4];
        text += "0123456789abcdef"[static_cast<unsigned>(each) & 15];
    }
    return text;
}

TEST_P(Cipher, opens_what_was_sealed) {
    Direction direction{GetParam(), keys.key(1, 2)};
    for (const std::size_t size : {0u, 1u, 8u, 15u, 16u, 17u, 1400u, 16296u}) {
        const Octets header = some_bytes(40), body = some_bytes(size);
        const std::uint64_t number = direction.seal.next_number();
        Octets sealed = direction.sealed(header, body);
        EXPECT_TRUE(size < 8 || std::memcmp(sealed.data(), body.data(), size) != 0) << size;
        ASSERT_TRUE(direction.opens(number, header, sealed)) << size;
        EXPECT_TRUE(std::ranges::equal(Bytes{sealed}.first(size), body)) << size;
    }
}

TEST_P(Cipher, opens_nothing_that_was_altered) {
    Direction direction{GetParam(), keys.key(1, 2)};
    Octets header = some_bytes(40);
    const Octets body = some_bytes(72);
    const Octets sealed = direction.sealed(header, body);
    for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
        Octets altered = sealed;
        altered[bit / 8] ^= std::byte{1} << (bit % 8);
        EXPECT_FALSE(direction.opens(0, header, altered)) << bit;
    }
    for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
        header[bit / 8] ^= std::byte{1} << (bit % 8);
        Octets same = sealed;
        EXPECT_FALSE(direction.opens(0, header, same)) << bit;
        header[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    Octets renumbered = sealed, shortened = sealed, same = sealed;
    EXPECT_FALSE(direction.opens(1, header, renumbered));
    shortened.erase(shortened.begin());
    EXPECT_FALSE(direction.opens(0, header, shortened));
    EXPECT_TRUE(direction.opens(0, header, same));
}

TEST_P(Cipher, opens_nothing_of_another_direction_or_job) {
    Direction here{GetParam(), keys.key(1, 2)}, back{GetParam(), keys.key(2, 1)};
    CipherKeys others;
    ASSERT_TRUE(others.open({job.low, job.high ^ 1}));
    Direction foreign{GetParam(), others.key(1, 2)};
    const Octets header = some_bytes(40);
    const Octets sealed = here.sealed(header, some_bytes(100));
    for (Direction* other : {&back, &foreign}) {
        Octets copy = sealed;
        EXPECT_FALSE(other->opens(0, header, copy));
    }
    std::set<CipherKey> made;
    for (std::uint64_t from = 0; from < 32; ++from)
        for (std::uint64_t to = 0; to < 32; ++to) made.insert(keys.key(from, to));
    EXPECT_EQ(made.size(), 1024u);
}

TEST_P(Cipher, uses_no_number_twice) {
    Direction direction{GetParam(), keys.key(1, 2)};
    const DatagramHeader header{.from = 1, .to = 0, .sequence = 7};
    const Octets body = some_bytes(64);
    std::set<std::uint64_t> numbers;
    std::set<Octets> seen;
    for (int i = 0; i < 1000; ++i) {
        Octets datagram(header.bytes() + body.size() + tag_bytes);
        ASSERT_EQ(encrypt_datagram(header, direction.seal, body, datagram.data()), datagram.size());
        std::uint64_t number = 0;
        std::memcpy(&number, datagram.data() + 32, sizeof number);
        numbers.insert(number);
        seen.insert(datagram);
    }
    EXPECT_EQ(numbers.size(), 1000u);
    EXPECT_EQ(seen.size(), 1000u);
}

TEST_P(Cipher, allocates_nothing_once_there_is_a_key) {
    Direction direction{GetParam(), keys.key(1, 2)};
    DirectionCipher stranger;
    stranger.begin(GetParam(), false);
    const Octets header = some_bytes(40), body = some_bytes(1400);
    const std::uint64_t before = crypto_allocations();
    EXPECT_GT(before, 0u);
    for (std::uint64_t number = 0; number < 100; ++number) {
        Octets sealed = direction.sealed(header, body), spoiled = sealed;
        spoiled[number] ^= std::byte{4};
        ASSERT_FALSE(direction.opens(number, header, spoiled));
        stranger.set_key(keys.key(number, 3));
        ASSERT_TRUE(direction.opens(number, header, sealed));
    }
    EXPECT_EQ(crypto_allocations(), before);
    stranger.close();
}

TEST_P(Cipher, carries_datagrams_of_all_kinds_and_refuses_them_spoiled) {
    Direction direction{GetParam(), keys.key(1, 2)};
    Random random{7};
    for (const Octets& plain : samples::corpus()) {
        DatagramHeader header;
        ASSERT_EQ(open_datagram(plain, samples::key, header), Refusal::none);
        Octets datagram(plain.size() + tag_bytes);
        encrypt_datagram(header, direction.seal, records_of(plain, header), datagram.data());
        for (int i = 0; i < 200; ++i) {
            Octets spoiled = samples::mutated({datagram}, random);
            MutableBytes bytes{spoiled};
            DatagramHeader found;
            EXPECT_NE(decrypt_datagram(bytes, direction.open, found), Refusal::none);
        }
        MutableBytes bytes{datagram};
        EXPECT_EQ(joined_bytes(bytes), datagram.size());
        DatagramHeader found;
        ASSERT_EQ(decrypt_datagram(bytes, direction.open, found), Refusal::none);
        const Bytes records = records_of(bytes, found), wanted = records_of(plain, header);
        EXPECT_TRUE(std::ranges::equal(records, wanted));
        EXPECT_EQ(found.sequence, header.sequence);
        EXPECT_EQ(found.acknowledged, header.acknowledged);
    }
}

INSTANTIATE_TEST_SUITE_P(Each, Cipher,
                         testing::Values(CipherKind::aes_128_gcm, CipherKind::chacha20_poly1305),
                         [](const auto& info) {
                             return info.param == CipherKind::aes_128_gcm ? "aes" : "chacha";
                         });

// McGrew & Viega, "The Galois/Counter Mode of Operation", test cases 1 and 2: key and number zero.
TEST(AesGcm, gives_what_is_published) {
    CipherKeys keys;
    if (const auto opened = keys.open(job); !opened) GTEST_SKIP() << opened.error().text;
    Direction empty{CipherKind::aes_128_gcm}, zeros{CipherKind::aes_128_gcm};
    EXPECT_EQ(digits(empty.sealed({}, {})), "58e2fccefa7e3061367f1d57a4e7455a");
    EXPECT_EQ(digits(zeros.sealed({}, Octets(16))),
              "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf");
}

TEST(CryptoLibrary, is_found_by_nobody_who_asks_for_its_name) {
    const auto loaded = CryptoLibrary::load();
    if (!loaded) GTEST_SKIP() << loaded.error().text;
    EXPECT_EQ(::dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD), nullptr);
    EXPECT_EQ(::dlsym(RTLD_DEFAULT, "EVP_CIPHER_CTX_new"), nullptr);
    void* const system = ::dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(system, nullptr) << ::dlerror();
    EXPECT_NE(::dlsym(system, "EVP_CIPHER_CTX_new"),
              reinterpret_cast<void*>((*loaded)->context_new));
}

TEST(CryptoMemory, gives_pieces_that_do_not_overlap_and_takes_them_back) {
    std::vector<std::byte*> pieces;
    for (std::size_t bytes = 1; bytes < 5000; bytes = bytes * 3 / 2 + 1) {
        auto* const piece = static_cast<std::byte*>(allocate_for_crypto(bytes));
        ASSERT_NE(piece, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % 16, 0u);
        std::memset(piece, static_cast<int>(pieces.size() + 1), bytes);
        pieces.push_back(piece);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i)
        EXPECT_EQ(pieces[i][0], static_cast<std::byte>(i + 1));
    auto* const grown = static_cast<std::byte*>(reallocate_for_crypto(pieces.back(), 100'000));
    ASSERT_NE(grown, nullptr);
    EXPECT_EQ(grown[1000], static_cast<std::byte>(pieces.size()));
    free_for_crypto(grown);
    EXPECT_EQ(allocate_for_crypto(100'000), grown);
    free_for_crypto(grown);
    EXPECT_EQ(allocate_for_crypto(std::size_t{1} << 40), nullptr);
    free_for_crypto(nullptr);
}

}  // namespace
}  // namespace hiroba::net::wire
