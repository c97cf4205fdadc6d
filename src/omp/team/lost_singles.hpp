// SPDX-License-Identifier: BSD-3-Clause
// Role: which constructs another thread executes while this one goes on without a barrier: singles
// that it did not get, sections that it has left.
// Invariant: of constructs of one phase of the team, the latest last. Empty: what they stored is
// here, or no other node has executed one.
#pragma once

#include <cstdint>

namespace hiroba::omp {

struct LostSingles {
    std::uint64_t first = 0, end = 0;  ///< numbers of constructs

    bool any() const noexcept { return first != end; }
    void add(std::uint64_t sequence) noexcept {
        if (!any()) first = sequence;
        end = sequence + 1;
    }
};

}  // namespace hiroba::omp
