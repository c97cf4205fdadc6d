// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/counts/recorded.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

namespace hiroba::dsm {
namespace {

constexpr std::size_t block_bytes = 4096;
using Block = std::vector<std::byte>;

/// What is to be recorded of a block, byte by byte: its parts and its shape.
std::pair<std::uint64_t, std::uint64_t> changes_of(const Block& live, const Block& known) {
    std::uint64_t parts = 0;
    ChangeShape shape;
    for (std::uint32_t at = 0; at < block_bytes; ++at) {
        if (live[at] == known[at]) continue;
        if (shape.bytes == 0) shape.first = at;
        shape.last = at;
        shape.runs += at == 0 || live[at - 1] == known[at - 1];
        ++shape.bytes;
        parts |= std::uint64_t{1} << (at / 64);
    }
    return {parts, shape.packed()};
}

TEST(RecordedMerge, has_the_shape_of_what_changed) {
    char name[] = "/tmp/hiroba-recorded-XXXXXX";
    const std::string folder = mkdtemp(name);
    ASSERT_TRUE(bool(start_recording((folder + "/r").c_str(), 1 << 20, 0, 1, 1)));
    std::mt19937 random(7);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted;
    for (unsigned round = 0; round < 400; ++round) {
        Block known(block_bytes), live;
        for (std::byte& each : known) each = static_cast<std::byte>(random());
        live = known;
        for (unsigned run = random() % 5; run > 0; --run) {  // 0: nothing has changed
            const std::size_t begin = random() % block_bytes;
            const std::size_t end =
                std::min(block_bytes, begin + 1 + random() % (1u << random() % 13));
            for (std::size_t at = begin; at < end; ++at)
                live[at] ^= static_cast<std::byte>(random() % 3);
        }
        wanted.push_back(changes_of(live, known));
        record_merge(round, live.data(), known.data(), block_bytes);
    }
    record_is_on = false;
    std::ifstream in(folder + "/r.0", std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    std::size_t found = 0;
    for (std::size_t at = record_head_bytes + sizeof(RecordChunkHead);
         at + sizeof(Record) <= record_head_bytes + record_chunk_bytes; at += sizeof(Record)) {
        Record record;
        std::memcpy(&record, bytes.data() + at, sizeof record);
        if (record.kind() != RecordKind::merged) continue;
        ASSERT_LT(found, wanted.size());
        EXPECT_EQ(record.first, found);
        EXPECT_EQ(record.second, wanted[found].first);
        EXPECT_EQ(record.head >> 8, wanted[found].second);
        ++found;
    }
    EXPECT_EQ(found, wanted.size());
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hiroba::dsm
