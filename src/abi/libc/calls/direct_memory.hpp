// SPDX-License-Identifier: BSD-3-Clause
// Role: calls by which the kernel gets at pages otherwise than by an address in a buffer: direct
// input and output (O_DIRECT), and a process's own memory as a file (/proc/self/mem).
// Invariant: what is written into global memory is noticed when it is written. What a device puts
// into a page that it was shown before is not: so files are read and written through the kernel's
// cache, which copies.
#pragma once

#include <linux/openat2.h>

#include "abi/libc/calls/system_calls.hpp"

namespace hiroba::abi {

/// The same call without O_DIRECT, which asks for no other result. Pipes keep it: to them it means
/// packets.
class ThroughCache {
public:
    ThroughCache(long number, const CallArguments& arguments) noexcept;
    const CallArguments& arguments() const noexcept { return arguments_; }

private:
    CallArguments arguments_;
    open_how how_{};
};

/// Ends the job where a program is about to clear the bits by which the kernel notes what was
/// written
/// (/proc/PID/clear_refs): each node's knows its own threads' writes, and the fault engine's.
void refuse_soft_dirty(const char* path) noexcept;

/// Pins what a call on /proc/self/mem is about: global memory, by the place in the file.
/// @param place  -1: that of the call's own argument
/// @return false when it is no such call
bool add_memory_as_file(PinnedBuffers& buffers, long number, const CallArguments& arguments,
                        long place) noexcept;

}  // namespace hiroba::abi
