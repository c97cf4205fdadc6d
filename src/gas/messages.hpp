// SPDX-License-Identifier: BSD-3-Clause
// Role: the messages of this layer, numbered behind those of net.
#pragma once

#include "net/message_kind.hpp"

namespace hiroba::gas::message {

using net::kind_after;
using net::MessageKind;

/// Commands for memory of the receiver, and their answers: those of color 0, and behind them a kind
/// for each further color.
inline constexpr MessageKind delegation = kind_after(net::last_message);
inline constexpr MessageKind delegation_last = kind_after(kind_after(kind_after(delegation)));
/// Directories of relocatable pages, and pages that move.
inline constexpr MessageKind relocation = kind_after(delegation_last);

inline constexpr MessageKind last = relocation;

}  // namespace hiroba::gas::message
