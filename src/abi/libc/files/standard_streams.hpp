// SPDX-License-Identifier: BSD-3-Clause
// Role: whose descriptors 0, 1 and 2 are, and how their streams are buffered. At the start each
// node has its own, which are the same files; from the moment the program makes one another file,
// that of the node that did so serves all. Invariant: this lies in global memory, so a redirection,
// or another buffering, is seen by what comes after it in the program's own order of
// synchronization, as in one process.
#pragma once

#include <stdio.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ids.hpp"

namespace hiroba::abi {

inline constexpr int standard_descriptors = 3;
inline bool is_standard(long fd) noexcept { return fd >= 0 && fd < standard_descriptors; }

/// What the program has last asked of setvbuf().
struct Buffering {
    std::uint32_t version = 0;  ///< 0: nothing yet
    int mode = 0;
    std::size_t bytes = 0;
};

struct StandardOwners {
    /// For each descriptor, one more than the rank of the node that has it; 0: each node has its
    /// own.
    std::uint32_t owner_and_one[standard_descriptors] = {};
    Buffering buffering[standard_descriptors];
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
/// libc's stdout, whatever the program has stored in `stdout`.
FILE* standard_output() noexcept;

/// The program has set, or sets, the buffering of this node's stream `number` (0 to 2).
int buffer_standard_stream(int number, int mode, std::size_t bytes) noexcept;
/// Before this node's stream `number` is used: buffers it as the program has last asked, wherever.
/// Thread: of the program; may fault global memory in.
void follow_buffering(int number) noexcept;

}  // namespace hiroba::abi
