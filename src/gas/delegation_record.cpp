// SPDX-License-Identifier: BSD-3-Clause
#include "gas/delegation_record.hpp"

#include <initializer_list>

namespace hiroba::gas {
namespace {

using Kind = DelegationRecord::Kind;

/// Words of a head, or 0 for what is no kind.
std::size_t head_words(Kind kind) noexcept {
    switch (kind) {
        case Kind::put: return 4;
        case Kind::copy: return 5;
        case Kind::atomic: return 6;
        case Kind::done: return 3;
    }
    return 0;
}

bool take_put(Bytes& body, DelegationRecord& record, const std::uint64_t* words,
              Bytes& data) noexcept {
    record.dst = words[2];
    record.bytes = words[3];
    if (record.bytes > body.size() || round_up(record.bytes, 8) > body.size()) return false;
    data = body.first(record.bytes);
    body = body.subspan(round_up(record.bytes, 8));
    return true;
}

}  // namespace

EncodedRecord::EncodedRecord(const DelegationRecord& record) noexcept {
    words_[0] = static_cast<std::uint64_t>(record.kind) |
                static_cast<std::uint64_t>(record.op) << 8 |
                static_cast<std::uint64_t>(record.width) << 16 |
                static_cast<std::uint64_t>(record.origin.value) << 32;
    words_[1] = record.token;
    const auto add = [this](std::initializer_list<std::uint64_t> words) {
        for (const std::uint64_t word : words) words_[count_++] = word;
    };
    switch (record.kind) {
        case Kind::put: add({record.dst, record.bytes}); break;
        case Kind::copy: add({record.dst, record.src, record.bytes}); break;
        case Kind::atomic: add({record.dst, record.src, record.operand, record.expected}); break;
        case Kind::done: add({record.bytes}); break;
    }
}

bool decode_record(Bytes& body, DelegationRecord& record, Bytes& data) noexcept {
    std::uint64_t words[6] = {};
    data = {};
    if (body.size() < 16) return false;
    std::memcpy(words, body.data(), 16);
    record.kind = static_cast<Kind>(words[0] & 0xff);
    record.op = static_cast<net::AtomicOp>(words[0] >> 8 & 0xff);
    record.width = static_cast<std::uint8_t>(words[0] >> 16);
    record.origin = NodeId{static_cast<std::uint32_t>(words[0] >> 32)};
    record.token = words[1];
    const std::size_t count = head_words(record.kind);
    if (count == 0 || (words[0] >> 24 & 0xff) != 0 || body.size() < 8 * count) return false;
    std::memcpy(words, body.data(), 8 * count);
    body = body.subspan(8 * count);
    switch (record.kind) {
        case Kind::put: return take_put(body, record, words, data);
        case Kind::done: record.bytes = words[2]; return true;
        case Kind::copy: record.bytes = words[4]; break;
        case Kind::atomic:
            record.operand = words[4];
            record.expected = words[5];
            break;
    }
    record.dst = words[2];
    record.src = words[3];
    const bool good_width = record.width == 4 || record.width == 8;
    return record.kind == Kind::copy || (good_width && record.op <= net::AtomicOp::compare_swap);
}

}  // namespace hiroba::gas
