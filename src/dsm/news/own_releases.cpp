// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/news/own_releases.hpp"

namespace hiroba::dsm {

// A release that begins while this is decided may end before it finds the debt; where it made
// nothing it is told to no node, and a node that asks for it would wait for ever. So the debt is
// written first, and then the release it names has not begun.
ReleaseNumber OwnReleases::owe() noexcept {
    for (;;) {
        const ReleaseNumber owed = begun_.load(std::memory_order_seq_cst) + 1;
        ReleaseNumber before = debt_.load(std::memory_order_seq_cst);
        while (before < owed &&
               !debt_.compare_exchange_weak(before, owed, std::memory_order_seq_cst)) {
        }
        // In one order with begin() and is_owed().
        if (begun_.load(std::memory_order_seq_cst) < owed) return owed;
    }
}

}  // namespace hiroba::dsm
