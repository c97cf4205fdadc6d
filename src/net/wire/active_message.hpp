// SPDX-License-Identifier: BSD-3-Clause
// Role: what precedes the payload of an active message: one word, then the arguments.
// Invariant: little endian words; every read is checked, because another process wrote the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.hpp"

namespace hiroba::net::wire {

inline constexpr std::size_t active_arguments_max = 6;

struct ActiveHeader {
    std::uint8_t handler = 0;
    std::uint8_t arguments = 0;  ///< how many
};

using ActiveWords = std::array<std::uint64_t, 1 + active_arguments_max>;

/// The bytes to send before the payload; they lie in `words`.
inline Bytes encode_active(const ActiveHeader& header, const std::uint64_t* arguments,
                           ActiveWords& words) noexcept {
    words[0] = header.handler | std::uint64_t{header.arguments} << 8;
    if (header.arguments != 0) std::memcpy(&words[1], arguments, std::size_t{8} * header.arguments);
    return std::as_bytes(std::span(words)).first(std::size_t{8} * (1u + header.arguments));
}

/// False for bytes that no sender writes. `payload` is borrowed from `body`.
inline bool decode_active(Bytes body, ActiveHeader& header, ActiveWords& arguments,
                          Bytes& payload) noexcept {
    std::uint64_t word = 0;
    if (body.size() < sizeof word) return false;
    std::memcpy(&word, body.data(), sizeof word);
    header = {static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8)};
    const std::size_t bytes = std::size_t{8} * header.arguments;
    if (word >> 16 != 0 || header.arguments > active_arguments_max) return false;
    if (body.size() < sizeof word + bytes) return false;
    if (bytes != 0) std::memcpy(arguments.data(), body.data() + sizeof word, bytes);
    payload = body.subspan(sizeof word + bytes);
    return true;
}

}  // namespace hiroba::net::wire
