// SPDX-License-Identifier: BSD-3-Clause
// Role: whose descriptors 0, 1 and 2 are. At the start each node has its own, which are the same
// files; from the moment the program makes one another file, that of the node that did so serves
// all. Invariant: the owners lie in global memory, so a redirection is seen by what comes after it
// in the program's own order of synchronization, as in one process.
#pragma once

#include <stdio.h>

#include <cstdint>
#include <optional>

#include "base/ids.hpp"

namespace hiroba::abi {

inline constexpr int standard_descriptors = 3;
inline bool is_standard(long fd) noexcept { return fd >= 0 && fd < standard_descriptors; }

/// For each descriptor, one more than the rank of the node that has it; 0: each node has its own.
struct StandardOwners {
    std::uint32_t owner_and_one[standard_descriptors] = {};
};

/// Node 0, before a region of several nodes: where the owners lie. Makes room the first time.
StandardOwners* publish_standard_owners() noexcept;
/// Another node, at the start of its first region.
void adopt_standard_owners(StandardOwners* published) noexcept;

/// The node whose descriptor `fd` (0 to 2) the program means; none: this node's own.
/// Thread: of the program; may fault global memory in.
std::optional<NodeId> standard_owner(long fd) noexcept;

/// The program has opened, closed or replaced descriptor `fd` on node `owner`. Others than 0 to 2
/// are of no interest.
void standard_descriptor_changed(long fd, NodeId owner) noexcept;

/// The number of a standard stream of libc, which lies at one address on all nodes; -1: another.
int standard_number(const FILE* stream) noexcept;

}  // namespace hiroba::abi
