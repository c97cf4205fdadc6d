// SPDX-License-Identifier: BSD-3-Clause
// Role: SIGCHLD of children whose parent is another node than 0: that node's kernel says it there,
// where no thread runs the program's handlers; it is said again on node 0.
// Invariant: as on one machine, node 0 has the signal when the child can be waited for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::abi {

/// What node 0 is asked, numbered behind ThreadCall: the data are the siginfo.
enum class ChildCall : std::int64_t { tell = (1 << 22) + 2 };

/// Before the program starts another one: from here on this node tells node 0. Threads: any.
void tell_of_children() noexcept;
/// For another node. @return 0 or a negated error number
std::int64_t tell_of_child_here(const std::byte* info) noexcept;

}  // namespace hiroba::abi
