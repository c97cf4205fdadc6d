// SPDX-License-Identifier: BSD-3-Clause
// Role: whether a copy that a notice has made stale is worth bringing up to date at once, guessed
// from whether it was used after former notices. Pure; one of these per block and node.
// Invariant: what is never used is invalidated, and then costs nothing at further notices.
//
// An update costs a fifth of an invalidation and the fault that follows it, and nobody tells
// whether an updated copy was used. So after some updates the copy is invalidated to find out: the
// fault that comes before the next notice proves its use and doubles the number of updates until
// the next such test; a notice that finds it still inaccessible ends the updates.
#pragma once

#include <cstdint>

namespace hiroba::dsm {

/// Zero-filled memory is a block without history.
class UseHistory {
public:
    /// At a notice for a readable copy: true if it should be updated, false if invalidated.
    constexpr bool update_now() noexcept {
        if (left_ == 0) {
            awaits_use_ = true;
            return false;
        }
        --left_;
        return true;
    }
    /// At a notice for a copy that is inaccessible already.
    constexpr void not_used() noexcept {
        awaits_use_ = false;
        budget_ = left_ = 0;
    }
    /// At a fault that brings the copy back.
    constexpr void used() noexcept {
        if (!awaits_use_) return;
        awaits_use_ = false;
        budget_ = static_cast<std::uint8_t>(budget_ == 0           ? budget_first
                                            : budget_ < budget_max ? 2 * budget_
                                                                   : budget_max);
        left_ = budget_;
    }

    static constexpr std::uint8_t budget_first = 4, budget_max = 64;

private:
    std::uint8_t budget_ = 0;  ///< updates between two tests
    std::uint8_t left_ = 0;    ///< of them
    bool awaits_use_ = false;  ///< invalidated, no fault and no further notice since
};

}  // namespace hiroba::dsm
