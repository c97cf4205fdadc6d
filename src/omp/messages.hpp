// SPDX-License-Identifier: BSD-3-Clause
// Role: the messages of this layer, numbered behind those of dsm. docs/protocol.md lists them from
// here.
#pragma once

#include "dsm/messages.hpp"
#include "net/message_kind.hpp"

namespace hiroba::omp::message {

using net::kind_after;
using net::MessageKind;

/// Fork, barrier, join.
inline constexpr MessageKind team_news = kind_after(dsm::message::last);
/// The program is over: so node 0 tells, others answer that they rest, and all leave.
inline constexpr MessageKind quit = kind_after(team_news);
/// The sender has cancelled a region or a worksharing construct.
inline constexpr MessageKind cancelled = kind_after(quit);
/// Tasks that go to another node, and what became of them.
inline constexpr MessageKind tasks = kind_after(cancelled);

/// A part of the program runs on the sender between regions, too.
inline constexpr MessageKind runs_between_regions = kind_after(tasks);

inline constexpr MessageKind last = runs_between_regions;

}  // namespace hiroba::omp::message
