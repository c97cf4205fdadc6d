// SPDX-License-Identifier: BSD-3-Clause
// Role: the word at a block's home by which readers extend its `rts` without its lock
// (docs/protocol.md#renewal). Invariant: while it is open, its node is the block's home and the
// version there is the newest; a thread that takes the lock closes the word first and finds in it
// all that readers were given. Of one node's word no value comes back with another version.
// Source: the paper, section 3.3, end.
#pragma once

#include <cstdint>

#include "dsm/protocol/timestamp.hpp"

namespace hiroba::dsm {

/// {closed, kept, read, sole, rts}. Zero, of untouched memory, is open: only the initial home is
/// ever asked then.
class LeaseWord {
public:
    static constexpr std::uint64_t closing_bit = std::uint64_t{1} << 63;
    /// The home keeps the lock until it is asked for it (docs/protocol.md#exclusive).
    static constexpr std::uint64_t keeping_bit = std::uint64_t{1} << 62;
    /// A reader has extended the word since the version was published.
    static constexpr std::uint64_t reading_bit = std::uint64_t{1} << 61;
    /// No node can read its copy, the home neither, and none has a notice of the version: who
    /// takes the lock may have the block for its own (docs/protocol.md#handed-over).
    static constexpr std::uint64_t sole_bit = std::uint64_t{1} << 60;

    constexpr LeaseWord() = default;
    static constexpr LeaseWord from_raw(std::uint64_t raw) { return LeaseWord{raw}; }
    /// @param read  the version stays the one that a reader has extended
    static constexpr LeaseWord open(Timestamp rts, bool read = false) {
        return LeaseWord{checked(rts) | (read ? reading_bit : 0)};
    }
    static constexpr LeaseWord open_and_read(Timestamp rts) { return open(rts, true); }
    static constexpr LeaseWord open_and_sole(Timestamp rts) {
        return LeaseWord{checked(rts) | sole_bit};
    }
    static constexpr LeaseWord closed(Timestamp rts, bool read = false) {
        return LeaseWord{checked(rts) | closing_bit | (read ? reading_bit : 0)};
    }

    constexpr std::uint64_t raw() const { return raw_; }
    constexpr bool is_open() const { return (raw_ & closing_bit) == 0; }
    constexpr bool is_kept() const { return (raw_ & keeping_bit) != 0; }
    constexpr bool was_read() const { return (raw_ & reading_bit) != 0; }
    constexpr bool is_sole() const { return (raw_ & sole_bit) != 0; }
    /// No node has ever had the lock, nor read at the home.
    constexpr bool is_untouched() const { return (raw_ & ~closing_bit) == 0; }
    constexpr Timestamp rts() const { return Timestamp{raw_ & ~all_bits}; }
    constexpr bool operator==(const LeaseWord&) const = default;

private:
    constexpr explicit LeaseWord(std::uint64_t raw) : raw_(raw) {}
    static constexpr std::uint64_t all_bits = closing_bit | keeping_bit | reading_bit | sole_bit;
    static constexpr std::uint64_t checked(Timestamp rts) {
        HIROBA_INVARIANT((rts.value & all_bits) == 0, "logical time ran out at %lu", rts.value);
        return rts.value;
    }
    std::uint64_t raw_ = 0;
};

/// How long a reader's lease is after `renewals` in a row that moved nothing: twice as long each
/// time, so that a block that no thread writes is asked for ever less often (Tardis 2.0). Bounded,
/// since a write has to be later than every lease.
constexpr std::uint64_t lease_after(unsigned renewals, std::uint64_t lease) {
    constexpr std::uint64_t longest = std::uint64_t{1} << 24;
    if (lease >= longest) return lease;
    for (; renewals > 0 && lease < longest; --renewals) lease *= 2;
    return lease;
}

}  // namespace hiroba::dsm
