// SPDX-License-Identifier: BSD-3-Clause
// Role: system calls on another node's descriptor that use several pieces of memory: they go over
// laid out in one message, as the table of system calls describes them.
// Invariant: the owner's kernel sees the pieces as the program's; what it writes comes back before
// the call returns.
#pragma once

#include "abi/libc/calls/system_calls.hpp"
#include "base/ids.hpp"

namespace hiroba::abi {

/// Ends the job: what cannot be carried over would fail where one process would not.
[[noreturn]] long refuse_on_owner(NodeId owner, long number, const CallArguments& given) noexcept;

/// A call whose memory `row` describes, on `owner`.
long carry_over(NodeId owner, const SystemCall& row, const CallArguments& given) noexcept;

/// sendto, recvfrom, sendmsg, recvmsg, sendmmsg and recvmmsg. Without ancillary data, which names
/// descriptors.
long carry_socket_transfer(NodeId owner, long number, const CallArguments& given) noexcept;

/// The second descriptor of a call, or -1: of sendfile, splice, epoll_ctl and their kin.
int second_descriptor(long number, const CallArguments& given) noexcept;

/// Such a call where its two descriptors are of different nodes: copies the bytes through memory,
/// or ends the job.
long join_nodes(long number, const CallArguments& given) noexcept;

/// Ends the job where a message of this node's sends another node's descriptor along.
void refuse_to_pass(long number, const CallArguments& given) noexcept;
/// Gives descriptors that have come along with a message this node's numbers.
void number_received(long number, const CallArguments& given, long result) noexcept;

}  // namespace hiroba::abi
