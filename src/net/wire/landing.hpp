// SPDX-License-Identifier: BSD-3-Clause
// Role: what precedes bytes that land in a peer's memory where nobody can store there directly.
// Invariant: fixed size, native byte order. The first three fields are the protection stamp, which
// the receiver compares with its own before it writes anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"

namespace hiroba::net::wire {

/// Followed by the bytes.
struct Landing {
    std::uint64_t job_key = 0;
    std::uint32_t rank = 0;  ///< of the receiver
    std::uint32_t region = 0;
    std::uint64_t offset = 0;
};

using LandingBytes = std::array<std::byte, sizeof(Landing)>;

inline LandingBytes encode_landing(const Landing& landing) noexcept {
    LandingBytes bytes;
    std::memcpy(bytes.data(), &landing, sizeof landing);
    return bytes;
}

/// Changes where a prepared header says the bytes land.
inline void patch_landing_offset(LandingBytes& bytes, std::uint64_t offset) noexcept {
    std::memcpy(bytes.data() + offsetof(Landing, offset), &offset, sizeof offset);
}

/// False when `bytes` is shorter than a header.
inline bool decode_landing(Bytes bytes, Landing& landing) noexcept {
    if (bytes.size() < sizeof landing) return false;
    std::memcpy(&landing, bytes.data(), sizeof landing);
    return true;
}

}  // namespace hiroba::net::wire
