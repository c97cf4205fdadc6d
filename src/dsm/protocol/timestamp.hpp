// SPDX-License-Identifier: BSD-3-Clause
// Role: logical time: the three rules by which timestamps of a block move (docs/protocol.md#time).
// Invariant: wts <= rts of one home, both never fall; a write is later than every lease given out.
// Source: the paper, sections 2.5 and 3.3; what it leaves open: docs/protocol.md#time.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

#include "base/fatal.hpp"

namespace hiroba::dsm {

/// A point of logical time. `Word` is narrowed by tests only, to reach the end of time.
template <class Word>
struct BasicTimestamp {
    Word value = 0;

    constexpr auto operator<=>(const BasicTimestamp&) const = default;

    /// Later by `ticks`. Running out of time is fatal: with 64 bits and a billion writes a second
    /// it takes fifty years at lease 10.
    constexpr BasicTimestamp after(std::uint64_t ticks) const {
        HIROBA_INVARIANT(ticks <= std::numeric_limits<Word>::max() - std::uint64_t{value},
                         "logical time ran out at %lu", std::uint64_t{value});
        return {static_cast<Word>(value + ticks)};
    }
};
using Timestamp = BasicTimestamp<std::uint64_t>;

/// `wts` of a merge that changes bytes: after every lease given out on the home's copy, and not
/// before what this node has been told to regard as old (docs/protocol.md#time).
template <class Word>
constexpr BasicTimestamp<Word> write_time(BasicTimestamp<Word> home_rts,
                                          BasicTimestamp<Word> min_wts) {
    return std::max(home_rts.after(1), min_wts);
}

/// `rts` after a read through the lock at a node whose signature says `min_wts`: the copy must
/// outlive min_wts, else the reader would drop it at once and read again for ever.
template <class Word>
constexpr BasicTimestamp<Word> read_until(BasicTimestamp<Word> home_wts,
                                          BasicTimestamp<Word> home_rts,
                                          BasicTimestamp<Word> min_wts, std::uint64_t lease) {
    return std::max(home_rts, std::max(home_wts, min_wts).after(lease));
}

}  // namespace hiroba::dsm
