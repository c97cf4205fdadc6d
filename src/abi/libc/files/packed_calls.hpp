// SPDX-License-Identifier: BSD-3-Clause
// Role: system calls on another node's descriptor that use several pieces of memory: they go over
// laid out in one message, as the table of system calls describes them.
// Invariant: the owner's kernel sees the pieces as the program's; what it writes comes back before
// the call returns.
#pragma once

#include "abi/libc/calls/system_calls.hpp"
#include "base/ids.hpp"

namespace hiroba::abi {

/// One line for the first few calls that cannot be carried over. @return -EBADF
long refuse_on_owner(NodeId owner, long number, const CallArguments& given) noexcept;

/// A call whose memory `row` describes, on `owner`.
long carry_over(NodeId owner, const SystemCall& row, const CallArguments& given) noexcept;

/// sendto, recvfrom, sendmsg and recvmsg. Without ancillary data, which names descriptors.
long carry_socket_transfer(NodeId owner, long number, const CallArguments& given) noexcept;

/// The second descriptor of a call, or -1: of sendfile, splice, epoll_ctl and their kin.
int second_descriptor(long number, const CallArguments& given) noexcept;

/// What such a call gives where its two descriptors are of different nodes: what the kernel gives
/// for files that it cannot join, where programs expect that, or EBADF with a line.
long refuse_to_join(long number, const CallArguments& given) noexcept;

}  // namespace hiroba::abi
