// SPDX-License-Identifier: BSD-3-Clause
// Role: what the search for races keeps and compares (node_races.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "dsm/engine/change_log.hpp"

namespace hiroba::dsm {

struct ThreeCopies {
    const std::byte* ours;
    const std::byte* twin;
    const std::byte* home;
};

/// A block that was brought here with changes that no synchronization of the program tells of.
struct EarlyBlock {
    enum class Use : std::uint8_t {
        none,     ///< brought by the runtime
        read,     ///< the program's first access was not a write
        written,  ///< it was a write
        again,    ///< another such version was here before
        retried,  ///< likewise, and the first access, a write, may not have been made yet
    } use = Use::none;
    bool alone = false;    ///< no other such block was here
    std::uint32_t at = 0;  ///< offset of the first access
    LastChange last;
};

/// Where changes of one node are visible that no synchronization of the program tells of.
struct SeenEarly {
    Epoch epoch = 0;  ///< the newest of them
    BlockId block = 0;
    bool in_more_blocks = false;
};

}  // namespace hiroba::dsm
