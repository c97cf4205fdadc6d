// SPDX-License-Identifier: BSD-3-Clause
// Role: the layout of delegated commands and their answers in a message.
// Source: ACP basic layer, section 5.2 and table 2. The fields that this table has for its own
// retransmission (task, sequence number) are the provider's here.
// Invariant: little endian words; a message is a row of records, each a multiple of 8 bytes; every
// read is checked, because another process wrote the bytes.
//
//   word 0   kind, operation, width, 0, origin (32 bits)
//   word 1   token: the origin's name for its command
//   put      dst, bytes, then the bytes themselves, filled up to 8   (32 +)
//   copy     dst, src, bytes                                         (40)
//   atomic   dst, src, operand, expected                             (48)
//   done     bytes                                                   (24)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::gas {

struct DelegationRecord {
    enum class Kind : std::uint8_t { put = 1, copy, atomic, done };
    Kind kind{};
    net::AtomicOp op{};
    std::uint8_t width = 0;  ///< of an atomic: 4 or 8
    NodeId origin;           ///< the rank that issued the command and gets the answer
    std::uint64_t token = 0;
    std::uint64_t dst = 0;
    std::uint64_t src = 0;
    std::uint64_t bytes = 0;  ///< of put, copy, done
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;
};

/// The head of a record, ready to send; the data of a put follow it.
class EncodedRecord {
public:
    explicit EncodedRecord(const DelegationRecord& record) noexcept;
    Bytes bytes() const noexcept { return std::as_bytes(std::span(words_)).first(8 * count_); }

private:
    std::uint64_t words_[6];
    std::size_t count_ = 2;
};

inline constexpr std::size_t delegation_head_bytes_max = 48;

/// Takes the first record off `body`. False for bytes that no sender writes; `data` of a put is
/// borrowed from `body`.
bool decode_record(Bytes& body, DelegationRecord& record, Bytes& data) noexcept;

}  // namespace hiroba::gas
