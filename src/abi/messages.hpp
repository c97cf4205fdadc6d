// SPDX-License-Identifier: BSD-3-Clause
// Role: the messages of this layer, numbered behind those of omp.
#pragma once

#include "net/message_kind.hpp"
#include "omp/messages.hpp"

namespace hiroba::abi::message {

using net::kind_after;
using net::MessageKind;

/// The program calls exit() on a node other than 0.
inline constexpr MessageKind exit_request = kind_after(omp::message::last);
/// A call on a descriptor or stream of the receiver, or a handler for the program's end.
inline constexpr MessageKind file_request = kind_after(exit_request);
/// Its outcome.
inline constexpr MessageKind file_reply = kind_after(file_request);

}  // namespace hiroba::abi::message
