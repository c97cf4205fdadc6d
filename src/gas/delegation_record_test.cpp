// SPDX-License-Identifier: BSD-3-Clause
#include "gas/delegation_record.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hiroba::gas {
namespace {

using Kind = DelegationRecord::Kind;

DelegationRecord record_of(Kind kind, std::size_t bytes) {
    DelegationRecord record;
    record.kind = kind;
    record.op = net::AtomicOp::compare_swap;
    record.width = 4;
    record.origin = NodeId{0x12345};
    record.token = 0x1111;
    record.dst = 0x2222;
    record.src = 0x3333;
    record.bytes = bytes;
    record.operand = 0x4444;
    record.expected = 0x5555;
    return record;
}

std::vector<std::byte> encoded(const DelegationRecord& record, Bytes data) {
    const EncodedRecord head(record);
    std::vector<std::byte> body(head.bytes().begin(), head.bytes().end());
    body.insert(body.end(), data.begin(), data.end());
    body.resize(round_up(body.size(), 8));
    return body;
}

TEST(DelegationRecord, ARowOfRecordsComesBackAsItWas) {
    std::vector<std::byte> data(13, std::byte{7}), row;
    const Kind kinds[] = {Kind::put, Kind::copy, Kind::atomic, Kind::done};
    for (const Kind kind : kinds) {
        const auto one = encoded(record_of(kind, 13), kind == Kind::put ? Bytes(data) : Bytes{});
        row.insert(row.end(), one.begin(), one.end());
    }
    Bytes left = row;
    for (const Kind kind : kinds) {
        DelegationRecord record;
        Bytes found;
        ASSERT_TRUE(decode_record(left, record, found));
        EXPECT_EQ(record.kind, kind);
        EXPECT_EQ(record.origin.value, 0x12345u);
        EXPECT_EQ(record.token, 0x1111u);
        EXPECT_EQ(found.size(), kind == Kind::put ? 13u : 0u);
        const bool has_dst = kind == Kind::put || kind == Kind::copy || kind == Kind::atomic;
        EXPECT_EQ(record.dst, has_dst ? 0x2222u : 0u);
        EXPECT_EQ(record.src, kind == Kind::copy || kind == Kind::atomic ? 0x3333u : 0u);
        if (kind == Kind::atomic) {
            EXPECT_EQ(record.op, net::AtomicOp::compare_swap);
            EXPECT_EQ(record.operand, 0x4444u);
            EXPECT_EQ(record.expected, 0x5555u);
        } else {
            EXPECT_EQ(record.bytes, 13u);
        }
    }
    EXPECT_TRUE(left.empty());
}

TEST(DelegationRecord, NothingCutShortIsUnderstood) {
    const std::vector<std::byte> data(20);
    for (const Kind kind : {Kind::put, Kind::copy, Kind::atomic, Kind::done}) {
        const auto whole = encoded(record_of(kind, 20), kind == Kind::put ? Bytes(data) : Bytes{});
        for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
            Bytes body = Bytes(whole).first(bytes);
            DelegationRecord record;
            Bytes found;
            EXPECT_FALSE(decode_record(body, record, found)) << bytes;
        }
    }
}

TEST(DelegationRecord, WhatNoSenderWritesIsNotUnderstood) {
    const auto refuses = [](std::size_t byte, unsigned value) {
        auto body = encoded(record_of(Kind::atomic, 0), {});
        body[byte] = static_cast<std::byte>(value);
        Bytes left = body;
        DelegationRecord record;
        Bytes found;
        return !decode_record(left, record, found);
    };
    EXPECT_TRUE(refuses(0, 0) && refuses(0, 5) && refuses(0, 255));  // kind
    EXPECT_TRUE(refuses(1, 6));                                      // operation
    EXPECT_TRUE(refuses(2, 0) && refuses(2, 16));                    // width
    EXPECT_TRUE(refuses(3, 1));                                      // is 0
    EXPECT_FALSE(refuses(2, 8));
    auto endless = encoded(record_of(Kind::put, 0), {});
    for (std::size_t i = 24; i < 32; ++i) endless[i] = std::byte{0xff};
    Bytes left = endless;
    DelegationRecord record;
    Bytes found;
    EXPECT_FALSE(decode_record(left, record, found));
}

TEST(DelegationRecord, RandomBytesAreNeverReadBeyondTheirEnd) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> bytes(random() % 96);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 9);
        Bytes left = bytes;
        DelegationRecord record;
        Bytes found;
        while (!left.empty() && decode_record(left, record, found)) {
            ASSERT_LE(found.data() + found.size(), bytes.data() + bytes.size());
            ASSERT_LE(left.size(), bytes.size());
        }
    }
}

}  // namespace
}  // namespace hiroba::gas
