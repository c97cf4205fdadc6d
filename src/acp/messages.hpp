// SPDX-License-Identifier: BSD-3-Clause
// Role: the messages of this layer, numbered behind those of gas. The layers of the shared memory
// number theirs from there, too: no process has both.
#pragma once

#include "gas/messages.hpp"

namespace hiroba::acp::message {

/// What is asked of a rank's heap, and its answers.
inline constexpr net::MessageKind heap = net::kind_after(gas::message::last);
/// What the ends of a channel tell each other.
inline constexpr net::MessageKind channel = net::kind_after(heap);

}  // namespace hiroba::acp::message
