// SPDX-License-Identifier: BSD-3-Clause
// Role: datagrams to test with: one of each kind as nodes send them, and how to spoil them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "net/wire/datagram.hpp"

namespace hiroba::net::wire::samples {

inline const PartKey parts = part_key({5, 6});
inline const DirectionKey key{{1, 2}, {3, 4}, &parts};

/// The datagram of node 1 to node 0 with these records, each payload all of one byte.
inline std::vector<std::byte> sealed(const DatagramHeader& header,
                                     const std::vector<WireRecord>& records,
                                     const DirectionKey& with = key) {
    std::vector<std::byte> bytes(header_bytes_max);
    for (const WireRecord& record : records) {
        const std::vector<std::byte> payload(record.payload_bytes, std::byte{0x5a});
        const std::size_t at = bytes.size();
        bytes.resize(at + padded_record_bytes(payload.size()));
        encode_wire_record(record, payload.data(), bytes.data() + at);
    }
    seal_datagram(header, with, bytes.data() + header_bytes_max, bytes.size() - header_bytes_max);
    bytes.erase(bytes.begin(),
                bytes.begin() + static_cast<std::ptrdiff_t>(header_bytes_max - header.bytes()));
    return bytes;
}

/// One of each, as nodes send them.
inline std::vector<std::vector<std::byte>> corpus() {
    using enum RecordKind;
    DatagramHeader data{.from = 1, .to = 0, .sequence = 7, .acknowledged = 3};
    DatagramHeader told = data;
    told.selective_words = 2;
    told.selective[1] = 5;
    DatagramHeader answer{.from = 1, .to = 0, .acknowledged = 9};
    return {
        sealed(answer, {}),
        sealed(data, {{.kind = message, .sub = 5, .payload_bytes = 100, .total_bytes = 100}}),
        sealed(told, {{.kind = put, .payload_bytes = 8, .offset = 64, .region = 1},
                      {.kind = put, .payload_bytes = 1300, .offset = 4096}}),
        sealed(data, {{.kind = get, .tag = 5, .offset = 8, .region = 1, .total_bytes = 4096}}),
        sealed(told, {{.kind = got, .payload_bytes = 77, .offset = 10, .total_bytes = 90}}),
        sealed(data, {{.kind = atomic, .sub = 1, .payload_bytes = 16, .tag = 3, .offset = 16}}),
        sealed(data,
               {{.kind = atomic_done, .payload_bytes = 8, .tag = 3}, {.kind = wake, .sub = 1}}),
        sealed(data, {{.kind = kick, .payload_bytes = 1, .offset = 77, .region = 1},
                      {.kind = kick, .payload_bytes = 8, .offset = 64, .region = 1}}),
    };
}

/// Flips, cuts, grows, splices; never the identity.
inline std::vector<std::byte> mutated(const std::vector<std::vector<std::byte>>& seeds,
                                      Random& random) {
    std::vector<std::byte> bytes = seeds[random.below(seeds.size())];
    const std::vector<std::byte> before = bytes;
    for (std::uint64_t times = 1 + random.below(4); times > 0; --times) {
        switch (random.below(5)) {
            case 0: bytes.resize(random.below(bytes.size() + 1)); break;
            case 1: bytes.resize(bytes.size() + random.below(64)); break;
            case 2: {
                const auto& other = seeds[random.below(seeds.size())];
                const std::size_t end = random.below(std::min(bytes.size(), other.size()) + 1);
                std::copy_n(other.begin(), end, bytes.begin());
                break;
            }
            default:
                if (!bytes.empty()) {
                    bytes[random.below(bytes.size())] ^= std::byte{1} << random.below(8);
                }
        }
    }
    if (bytes == before) bytes.push_back(std::byte{0});
    return bytes;
}

}  // namespace hiroba::net::wire::samples
