// SPDX-License-Identifier: BSD-3-Clause
// Role: a barrier's marks as bytes in polled memory. Source: Tanabe et al., DIMMnet-1, section 5.3.
//
// A member announces phase p by storing the low byte of p into its byte of a word of eight, which
// the reader takes in with one load, masks and compares. A member may be one phase ahead of the
// reader, never two: it passes phase p + 1 only after the reader has arrived there, which is after
// it passed p. So there are two words, for even and odd phases: in the word of p each byte holds p
// or p - 2, and a byte that wraps cannot be mistaken for another. The byte that releases a subtree
// needs no twin: the parent stores p + 1 only after the child has arrived at p + 1.
#pragma once

#include <cstdint>
#include <utility>

#include "net/kick/barrier_phases.hpp"

namespace hiroba::net::kick {

/// What a member tells by kicks over `Wire`. Meets `Marks`. The memory holds what phases before the
/// first have left.
template <Lines Wire>
class ByteMarks {
public:
    /// The part of every member's memory that marks take: zeroed, within a page.
    static constexpr std::uint32_t bytes = 128;

    explicit ByteMarks(Wire wire) : wire_(std::move(wire)) {}

    /// What this member stored before is visible to whoever sees the mark.
    void tell(Way way, const TreeNode& here, std::uint64_t phase) noexcept {
        const auto mark = static_cast<std::uint8_t>(phase);
        const auto tell_one = [&](std::uint32_t member, std::uint32_t offset) {
            wire_.kick_byte(member, offset, mark);
            wire_.flush(member);
        };
        if (way == Way::up) return tell_one(here.parent(), word_offset(phase) + here.branch());
        if (way == Way::down) {
            for (std::uint32_t branch = 0; branch < here.children(); ++branch)
                tell_one(here.child(branch), release_offset);
            return;
        }
        // Starting behind oneself spreads the load over the receivers.
        for (std::uint32_t i = 1; i < here.members; ++i)
            tell_one((here.index + i) % here.members, word_offset(phase) + here.index);
    }

    bool have_come(Way way, const TreeNode& here, std::uint64_t phase) noexcept {
        if (way != Way::down) return other_bits(way, here, phase) == 0;
        return wire_.byte_at(release_offset) == static_cast<std::uint8_t>(phase);
    }
    /// Calls each(member) for those whose marks have not come.
    template <class Each>
    void each_awaited(Way way, const TreeNode& here, std::uint64_t phase, Each&& each) noexcept {
        if (have_come(way, here, phase)) return;
        if (way == Way::down) return each(here.parent());
        const std::uint64_t others = other_bits(way, here, phase);
        for (std::uint32_t i = 0; i < tree_arity; ++i)
            if ((others >> 8 * i & 0xff) != 0) each(way == Way::across ? i : here.child(i));
    }
    Wire& wire() noexcept { return wire_; }
    /// Nothing: a mark stays until the one of two phases later overwrites it.
    void take(Way, const TreeNode&, std::uint64_t) noexcept {}

private:
    static constexpr std::uint32_t release_offset = 64;  // a line of its own: another writes it
    static constexpr std::uint64_t every_byte = 0x0101'0101'0101'0101u;

    static constexpr std::uint32_t word_offset(std::uint64_t phase) {
        return phase % 2 == 0 ? 0 : 8;
    }
    /// 0 in the bytes of members that have told of `phase`, and of those that are not awaited.
    std::uint64_t other_bits(Way way, const TreeNode& here, std::uint64_t phase) noexcept {
        const auto mark = static_cast<std::uint8_t>(phase);
        const std::uint64_t awaited =
            way == Way::across
                ? first_bytes(here.members) & ~(std::uint64_t{0xff} << 8 * here.index)
                : first_bytes(here.children());
        return (wire_.word_at(word_offset(phase)) ^ every_byte * mark) & awaited;
    }
    static constexpr std::uint64_t first_bytes(std::uint32_t count) {
        return count >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * count) - 1;
    }

    Wire wire_;
};

}  // namespace hiroba::net::kick
