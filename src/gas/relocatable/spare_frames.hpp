// SPDX-License-Identifier: BSD-3-Clause
// Role: memory of pages that have left this node: kept for a while, since pages come back and
// touching fresh memory costs as much as copying a page; then given back to the kernel.
// Invariant: a page is kept from when it has left until drop(), which its user calls, with the
// page's latch held, before the first byte of it is stored here again.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_set>

#include "base/latch.hpp"

namespace hiroba::gas {

/// Gives [at, at + bytes) back to the kernel; it reads as zeros afterwards. Whole pages of the
/// machine, of a shared mapping of a memory file or of private memory.
/// @param is_pinned  a device holds the pages: they are cleared, and stay
void scrub(std::byte* at, std::size_t bytes, bool is_pinned) noexcept;

/// Thread: any.
class SpareFrames {
public:
    void limit_to(std::uint64_t pages_max) noexcept { pages_max_ = pages_max; }
    /// Keeps `page`; returns the one kept longest if there are too many: drop() and scrub() it.
    std::optional<std::uint64_t> keep(std::uint64_t page);
    /// `page` is in use again, or about to be scrubbed. False: it was not kept.
    bool drop(std::uint64_t page);

private:
    Latch latch_;
    std::uint64_t pages_max_ = 0;
    std::deque<std::uint64_t> order_;  ///< dropped ones too
    std::unordered_set<std::uint64_t> kept_;
};

}  // namespace hiroba::gas
