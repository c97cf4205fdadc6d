// SPDX-License-Identifier: BSD-3-Clause
// Role: tells messages that a node of this job may write from all others, before any code uses what
// they say: pages and ranks in them are indexes.
#pragma once

#include "gas/relocatable/page_word.hpp"
#include "gas/relocatable/space_messages.hpp"

namespace hiroba::gas {

/// Whether the words are as many as the kind has, and name pages and ranks of `shape` alone.
bool is_well_formed(SpaceMessageKind kind, SpaceMessages::Words words,
                    const SpaceShape& shape) noexcept;

}  // namespace hiroba::gas
