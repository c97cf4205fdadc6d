// SPDX-License-Identifier: BSD-3-Clause
// Role: how news are laid out where they travel.
#pragma once

#include <cstdint>

#include "dsm/engine/change_log.hpp"
#include "dsm/protocol/stamp.hpp"

namespace hiroba::dsm {

/// Encoded news: this header, `clocks` of ClockNews, `count` notices, then, unless races are not
/// looked for, an Epoch for each node: what it did in earlier ones is known to whoever learns it.
struct NewsHeader {
    std::uint64_t min_wts;
    std::uint32_t count;
    std::uint32_t clocks;
};

/// Up to which releases of `node` the sender's news tell, with all news to the same receiver that
/// came before; and up to which its bytes make them necessary.
struct ClockNews {
    std::uint32_t node;
    std::uint32_t
        program_flushes;  ///< not 0: the program of some node that the sender knows of does
    ReleaseNumber told;
    ReleaseNumber needed;
    Epoch epoch;  ///< what those releases merged is of earlier ones
};

}  // namespace hiroba::dsm
