// SPDX-License-Identifier: BSD-3-Clause
// Role: transfers that the kernel ended at a page which it did not find, as it would at the end of
// the memory.
// Invariant: what is a short count on the bare machine stays one: the end of a file, what a pipe or
// a connection holds, a datagram, a signal.
#pragma once

#include "abi/libc/calls/system_calls.hpp"

namespace hiroba::abi {

/// Makes the rest of a read or write that has moved `done` bytes of more, if it was ended by a page
/// of a pinned buffer that the kernel has dropped, or has hidden for an instant
/// (docs/decisions/refused-calls.md). Any other call: returns `done`.
/// @return how many bytes were moved in all
long finish_transfer(const PinnedBuffers& buffers, long number, const CallArguments& arguments,
                     long done) noexcept;

}  // namespace hiroba::abi
