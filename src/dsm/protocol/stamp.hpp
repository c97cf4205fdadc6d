// SPDX-License-Identifier: BSD-3-Clause
// Role: what came before a version of a block: whose release must be over, and acquired, before a
// program may see its bytes (docs/protocol.md#before). Pure.
#pragma once

#include <compare>
#include <cstdint>

#include "base/ids.hpp"

namespace hiroba::dsm {

/// One node's count of its releases that had something to tell. 0: before the first.
using Epoch = std::uint64_t;

/// The number of a node's release, from 1; they are over in this order. 0: before the first.
using ReleaseNumber = std::uint64_t;

/// "What came before this version at `writer` is told of by its releases up to `release`."
class Stamp {
public:
    constexpr Stamp() = default;  ///< nothing came before
    constexpr Stamp(NodeId writer, ReleaseNumber release)
        : raw_((std::uint64_t{writer.value} + 1) << release_bits | release) {}
    static constexpr Stamp from_raw(std::uint64_t raw) {
        Stamp stamp;
        stamp.raw_ = raw;
        return stamp;
    }

    constexpr bool is_none() const { return raw_ == 0; }
    constexpr NodeId writer() const {
        return NodeId{static_cast<std::uint32_t>((raw_ >> release_bits) - 1)};
    }
    constexpr ReleaseNumber release() const {
        return raw_ & ((std::uint64_t{1} << release_bits) - 1);
    }
    constexpr std::uint64_t raw() const { return raw_; }
    constexpr bool operator==(const Stamp&) const = default;

private:
    static constexpr unsigned release_bits = 48;  // a million releases a second: nine years
    std::uint64_t raw_ = 0;
};

}  // namespace hiroba::dsm
