// SPDX-License-Identifier: BSD-3-Clause
// Role: whether a program releases so often that the background flusher may leave it alone.
// Invariant: a guess; it decides when something is published, never what. It is at most a second
// late.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dsm/protocol/stamp.hpp"

namespace hiroba::dsm {

class ReleaseRhythm {
public:
    /// A release has merged so many blocks. Thread: one at a time, the release role's.
    void note(std::size_t merged) noexcept {
        const std::size_t before = most_.load(std::memory_order_relaxed);
        most_.store(std::max(merged, before - before / 8), std::memory_order_relaxed);
    }
    /// True while the last release is not longer ago than some times what such releases take: each
    /// block that is merged beside the program's threads costs them a fault more.
    /// @param begun  how many releases have begun. Thread: the background flusher's, as below.
    bool comes_soon(ReleaseNumber begun, std::uint64_t now_ns) noexcept {
        if (begun != begun_) begun_ = begun, seen_at_ns_ = now_ns;
        const std::uint64_t wait_ns = most_.load(std::memory_order_relaxed) * wait_of_block_ns;
        return now_ns - seen_at_ns_ < std::min(wait_ns, longest_ns);
    }
    /// The flusher's own releases, the last of them the `begun`th, are not the program's: they put
    /// nothing off.
    void pass_over(ReleaseNumber begun) noexcept { begun_ = begun; }

private:
    static constexpr std::uint64_t wait_of_block_ns = 150'000, longest_ns = 1'000'000'000;
    std::atomic<std::size_t> most_{0};  ///< merged by the last ones, an eighth less with each
    ReleaseNumber begun_ = 0;
    std::uint64_t seen_at_ns_ = 0;
};

}  // namespace hiroba::dsm
