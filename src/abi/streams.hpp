// SPDX-License-Identifier: BSD-3-Clause
// Role: the output buffers of the process that are not ours: C, C++ and Fortran streams.
// Invariant: what a node has printed in a region is written before any node learns that the region
// has ended, and what stdout holds before any other synchronization is told: output comes in the
// order of synchronization.
#pragma once

#include <cstdint>

namespace hiroba::abi {

/// Finds what flush_streams() flushes. On several nodes also makes the C++ streams of this process
/// usable before, and on most nodes without, the program's own initializers. Before the program's
/// memory becomes global.
void prepare_streams(std::uint32_t nodes) noexcept;

/// Writes out what stdout and Fortran units hold. May read global memory.
void flush_streams() noexcept;

/// Before a process ends without libc's exit(): writes out what all streams of C hold. Waits for no
/// thread that has locked one and sleeps or reads, as fflush(nullptr) would. May read global
/// memory.
void flush_stdio_at_end() noexcept;

/// Writes out what stdout holds, and nothing else: cheap when it is empty, no global memory.
void flush_output() noexcept;

}  // namespace hiroba::abi
