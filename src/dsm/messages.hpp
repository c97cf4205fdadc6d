// SPDX-License-Identifier: BSD-3-Clause
// Role: the messages of this layer, numbered behind those of gas. docs/protocol.md lists them from
// here.
#pragma once

#include "gas/messages.hpp"
#include "net/message_kind.hpp"

namespace hiroba::dsm::message {

using net::kind_after;
using net::MessageKind;

/// A block lock request that follows the links by message.
inline constexpr MessageKind lock_chase = kind_after(gas::message::last);
/// Wake-up of a queued lock waiter.
inline constexpr MessageKind lock_handover = kind_after(lock_chase);
/// A node has flushed.
inline constexpr MessageKind flushed = kind_after(lock_handover);
/// Blocks freed on another node than the one they came from.
inline constexpr MessageKind remote_free = kind_after(flushed);
/// Free pages on their way back to the machine.
inline constexpr MessageKind freed_pages = kind_after(remote_free);
/// A release that is owed is asked for.
inline constexpr MessageKind release_wanted = kind_after(freed_pages);
/// A lock kept here is wanted, or unset, elsewhere; and the answer.
inline constexpr MessageKind lock_request = kind_after(release_wanted);
/// A block whose lock the receiver keeps is wanted elsewhere.
inline constexpr MessageKind block_wanted = kind_after(lock_request);
/// Bytes of a release were found; its news is asked for.
inline constexpr MessageKind release_asked = kind_after(block_wanted);
/// A thread was seen to wait for a plain write.
inline constexpr MessageKind spin_seen = kind_after(release_asked);

/// A block is wanted for an atomic, or no more.
inline constexpr MessageKind turn_asked = kind_after(spin_seen);
/// A block or release that the receiver has asked for is there, most likely.
inline constexpr MessageKind answered = kind_after(turn_asked);

inline constexpr MessageKind last = answered;

}  // namespace hiroba::dsm::message
