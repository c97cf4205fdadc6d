// SPDX-License-Identifier: BSD-3-Clause
// Role: datagrams come back as they were sealed; mutated ones do not open. The long run:
// HIROBA_FUZZ_COUNT=10000000 test_net --gtest_filter='Datagram.mutated*'
#include "net/wire/datagram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/test_parts/given_number.hpp"
#include "net/wire/datagram_samples.hpp"

namespace hiroba::net::wire {
namespace {

using namespace samples;

TEST(Datagram, opens_as_it_was_sealed) {
    DatagramHeader sent{.flags = flag_answer_now,
                        .selective_words = 3,
                        .from = 4,
                        .to = 2,
                        .sequence = 1ull << 40,
                        .acknowledged = (1ull << 48) - 2,
                        .arrived = 65534,
                        .selective = {1, 2, 1ull << 63}};
    const WireRecord record{.kind = RecordKind::put,
                            .sub = 3,
                            .payload_bytes = 13,
                            .tag = 8,
                            .offset = 1ull << 50,
                            .region = 6,
                            .total_bytes = 5};
    const auto bytes = sealed(sent, {record, {.kind = RecordKind::wake}});
    std::uint32_t from = 0;
    ASSERT_EQ(sender_of(bytes, 2, 5, from), Refusal::none);
    EXPECT_EQ(from, 4u);
    DatagramHeader header;
    ASSERT_EQ(open_datagram(bytes, key, header), Refusal::none);
    EXPECT_EQ(header.sequence, sent.sequence);
    EXPECT_EQ(header.acknowledged, sent.acknowledged);
    EXPECT_EQ(header.arrived, 65534u);
    EXPECT_EQ(header.selective[2], 1ull << 63);
    EXPECT_EQ(header.flags, flag_answer_now);
    WireRecord found;
    Bytes payload;
    ASSERT_TRUE(decode_wire_record(records_of(bytes, header), found, payload));
    EXPECT_EQ(found.offset, record.offset);
    EXPECT_EQ(found.tag, 8u);
    EXPECT_EQ(found.region, 6u);
    EXPECT_EQ(payload.size(), 13u);
    EXPECT_EQ(payload[12], std::byte{0x5a});
}

TEST(Datagram, of_another_job_direction_or_version_is_refused) {
    auto bytes = corpus()[2];
    std::uint32_t from = 0;
    EXPECT_EQ(sender_of(bytes, 1, 4, from), Refusal::misdirected);
    EXPECT_EQ(sender_of(bytes, 0, 1, from), Refusal::misdirected);
    EXPECT_EQ(sender_of(Bytes(bytes).first(39), 0, 2, from), Refusal::truncated);
    DatagramHeader header;
    const PartKey other_parts = part_key({5, 7});
    EXPECT_EQ(open_datagram(corpus()[3], {{1, 3}, {3, 4}, &parts}, header), Refusal::forged);
    EXPECT_EQ(open_datagram(bytes, {{1, 2}, {3, 5}, &parts}, header), Refusal::forged);
    EXPECT_EQ(open_datagram(bytes, {{1, 2}, {3, 4}, &other_parts}, header), Refusal::forged);
    EXPECT_EQ(open_datagram(Bytes(bytes).first(bytes.size() - 8), key, header), Refusal::forged);
    bytes[3] ^= std::byte{1};
    EXPECT_EQ(sender_of(bytes, 0, 2, from), Refusal::foreign);
}

TEST(Datagram, that_others_were_joined_to_is_told_from_them_by_the_lengths_they_carry) {
    const auto three = corpus()[3];
    auto shorter = corpus()[0];
    ASSERT_LT(shorter.size(), three.size());
    std::vector<std::byte> joined;
    for (int i = 0; i < 3; ++i) joined.insert(joined.end(), three.begin(), three.end());
    EXPECT_EQ(joined_bytes(three), three.size());
    EXPECT_EQ(joined_bytes(joined), three.size());
    joined.insert(joined.end(), shorter.begin(), shorter.end());
    EXPECT_EQ(joined_bytes(joined), three.size());
    // Nothing may follow a shorter one, nobody's length may be wrong, nothing may be left over.
    auto spoiled = joined;
    spoiled.insert(spoiled.end(), shorter.begin(), shorter.end());
    EXPECT_EQ(joined_bytes(spoiled), spoiled.size());
    spoiled = joined;
    spoiled[three.size() + 6] ^= std::byte{8};
    EXPECT_EQ(joined_bytes(spoiled), spoiled.size());
    spoiled = joined;
    spoiled.pop_back();
    EXPECT_EQ(joined_bytes(spoiled), spoiled.size());
    EXPECT_EQ(joined_bytes({}), 1u);
    EXPECT_EQ(joined_bytes(Bytes(three).first(39)), 39u);
}

TEST(Datagram, with_records_that_make_no_sense_is_refused_though_sealed) {
    using enum RecordKind;
    const DatagramHeader data{.from = 1, .to = 0, .sequence = 7};
    const std::vector<WireRecord> nonsense = {
        {.kind = RecordKind::count},
        {.kind = static_cast<RecordKind>(200)},
        {.kind = message, .payload_bytes = 10, .total_bytes = 9},
        {.kind = message, .payload_bytes = 10, .offset = ~0ull - 5, .total_bytes = 9},
        {.kind = put, .payload_bytes = 0},
        {.kind = get, .total_bytes = 0},
        {.kind = atomic, .payload_bytes = 16, .offset = 4},
        {.kind = atomic, .payload_bytes = 8},
        {.kind = wake, .sub = 2},
        {.kind = kick, .payload_bytes = 0},
        {.kind = kick, .payload_bytes = 3},
        {.kind = kick, .payload_bytes = 16},
        {.kind = kick, .payload_bytes = 8, .offset = 4},
    };
    DatagramHeader header;
    for (const WireRecord& record : nonsense) {
        const auto bytes = sealed(data, {{.kind = wake}, record});
        EXPECT_EQ(open_datagram(bytes, key, header), Refusal::malformed)
            << static_cast<unsigned>(record.kind);
    }
    EXPECT_EQ(open_datagram(sealed(data, {}), key, header), Refusal::malformed);
    EXPECT_EQ(open_datagram(sealed({.from = 1}, {{.kind = wake}}), key, header),
              Refusal::malformed);
}

TEST(Datagram, mutated_at_random_never_opens_and_its_records_never_lead_outside) {
    const std::uint64_t count = given_number("HIROBA_FUZZ_COUNT", 100'000);
    const auto seeds = corpus();
    Random random{42};
    std::uint64_t opened = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        // In memory of its own, so that the address sanitizer sees what reads beyond it.
        const auto bytes = mutated(seeds, random);
        std::uint32_t from = 0;
        DatagramHeader header;
        if (sender_of(bytes, 0, 2, from) == Refusal::none) {
            const bool spliced = std::find(seeds.begin(), seeds.end(), bytes) != seeds.end();
            opened += open_datagram(bytes, key, header) == Refusal::none && !spliced;
        }
        // What would happen behind a right authenticator: records are walked to their end.
        Bytes rest = bytes;
        WireRecord record;
        Bytes payload;
        while (decode_wire_record(rest, record, payload)) {
            ASSERT_LE(payload.data() + payload.size(), bytes.data() + bytes.size());
            rest = rest.subspan(padded_record_bytes(payload.size()));
        }
    }
    EXPECT_EQ(opened, 0u);
}

}  // namespace
}  // namespace hiroba::net::wire
