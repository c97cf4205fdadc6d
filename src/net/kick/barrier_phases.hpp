// SPDX-License-Identifier: BSD-3-Clause
// Role: the barrier as a state machine over any transport: it never waits, so that a simulator can
// run it under a virtual clock. Source: Tanabe et al., DIMMnet-1, section 5.3.
//
// A member announces phase p by storing the low byte of p into its byte of a word of eight, which
// the reader takes in with one load, masks and compares. A member may be one phase ahead of the
// reader, never two: it passes phase p + 1 only after the reader has arrived there, which is after
// it passed p. So there are two words, for even and odd phases: in the word of p each byte holds p
// or p - 2, and a byte that wraps cannot be mistaken for another. The byte that releases a subtree
// needs no twin: the parent stores p + 1 only after the child has arrived at p + 1.
#pragma once

#include <cstdint>

#include "net/kick/tree.hpp"

namespace hiroba::net::kick {

/// One member's side. Owned by one thread at a time.
template <Lines Wire>
class BarrierPhases {
public:
    /// Of every member's memory, zeroed, within a page.
    static constexpr std::uint32_t bytes = 128;

    /// @param first_phase  equal on all members; the memory holds what phases before it left
    BarrierPhases(Wire wire, std::uint32_t index, std::uint32_t members, Shape shape,
                  std::uint64_t first_phase = 0)
        : wire_(wire), node_{index, members}, shape_(shape), phase_(first_phase) {}

    /// Announces this member's arrival; what it stored before is visible to whoever passes. Only
    /// after the former phase has passed.
    void arrive() noexcept {
        ++phase_;
        told_ = false;
        const std::uint8_t mark = static_cast<std::uint8_t>(phase_);
        if (shape_ == Shape::all_to_all) {
            // Starting behind oneself spreads the load over the receivers.
            for (std::uint32_t i = 1; i < node_.members; ++i) {
                const std::uint32_t to = (node_.index + i) % node_.members;
                wire_.kick_byte(to, word_offset() + node_.index, mark);
                wire_.flush(to);
            }
            told_ = true;
            return;
        }
        passed();
    }

    /// Whether all have arrived. In the tree it also passes on what has come: so every member has
    /// to ask again and again until it is true.
    bool passed() noexcept {
        if (shape_ == Shape::all_to_all) return all_in(members_mask());
        if (!told_) {
            if (!all_in(children_mask())) return false;
            told_ = true;
            if (!node_.is_root()) {
                wire_.kick_byte(node_.parent(), word_offset() + node_.branch(), mark());
                wire_.flush(node_.parent());
            }
            released_ = false;
        }
        if (released_) return true;
        if (!node_.is_root() && wire_.byte_at(release_offset) != mark()) return false;
        for (std::uint32_t branch = 0; branch < node_.children(); ++branch) {
            wire_.kick_byte(node_.child(branch), release_offset, mark());
            wire_.flush(node_.child(branch));
        }
        released_ = true;
        return true;
    }

    std::uint64_t phase() const noexcept { return phase_; }

private:
    static constexpr std::uint32_t release_offset = 64;  // a line of its own: another writes it
    static constexpr std::uint64_t every_byte = 0x0101'0101'0101'0101u;

    std::uint8_t mark() const noexcept { return static_cast<std::uint8_t>(phase_); }
    std::uint32_t word_offset() const noexcept { return phase_ % 2 == 0 ? 0 : 8; }
    bool all_in(std::uint64_t mask) noexcept {
        return ((wire_.word_at(word_offset()) ^ every_byte * mark()) & mask) == 0;
    }
    static constexpr std::uint64_t first_bytes(std::uint32_t count) {
        return count >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * count) - 1;
    }
    std::uint64_t members_mask() const noexcept {
        return first_bytes(node_.members) & ~(std::uint64_t{0xff} << 8 * node_.index);
    }
    std::uint64_t children_mask() const noexcept { return first_bytes(node_.children()); }

    Wire wire_;
    TreeNode node_;
    Shape shape_;
    std::uint64_t phase_;
    bool told_ = true;      ///< this phase was announced
    bool released_ = true;  ///< ... and passed, and the children told so
};

}  // namespace hiroba::net::kick
