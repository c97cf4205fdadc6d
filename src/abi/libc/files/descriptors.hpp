// SPDX-License-Identifier: BSD-3-Clause
// Role: tells by a descriptor's number which node opened it.
// Invariant: each node has numbers of its own for what it opens for the program, first some of
// those that fit an fd_set, so a number means one file wherever it is used. Node 0's first ones are
// those of a bare run. 0, 1 and 2 are each node's own until the program replaces them
// (standard_streams.hpp).
#pragma once

#include <optional>

#include "abi/libc/calls/system_call_table.hpp"
#include "base/ids.hpp"

namespace hiroba::abi {

struct CallArguments;

/// Fixes the width, and raises this node's limit of open files so that its numbers are allowed.
/// At take-over; without it every descriptor is this node's.
void share_descriptors(NodeId self, std::uint32_t nodes) noexcept;

/// The node whose descriptor the call uses, when it is another than this one.
std::optional<NodeId> foreign_owner(const SystemCall& row, const CallArguments& arguments) noexcept;
/// The node that has descriptor `fd`, when it is another than this one.
std::optional<NodeId> foreign_owner(int fd) noexcept;

/// The node for which all others take a descriptor of this number; none: they cannot tell.
std::optional<NodeId> node_of_number(int fd) noexcept;

/// Gives what this node has just opened a number of its own. `fd` may be a negated error number.
long number_new_descriptor(long fd) noexcept;

}  // namespace hiroba::abi
