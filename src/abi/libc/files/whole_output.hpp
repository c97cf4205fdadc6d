// SPDX-License-Identifier: BSD-3-Clause
// Role: what a thread prints in one call, or between flockfile() and funlockfile(), comes out in
// one piece, as from one process. Each node has its own buffer for standard output, so one that is
// written out when it is full would be cut in the middle of a line that another node continues.
// Invariant: a node's standard output is written out between two calls, never within one, while it
// is fully buffered and the call prints less than a buffer holds (1 MiB); and one process of the
// machine at a time writes to the file behind descriptor 1 or 2.
#pragma once

#include <stdio.h>

#include <cstddef>

#include "base/ids.hpp"
#include "base/thread_context.hpp"

namespace hiroba::abi {

/// On several nodes, before the program's first output: gives stdout its buffer. A terminal keeps
/// libc's.
void prepare_whole_output() noexcept;

/// setvbuf() of this node's stdout with one of its modes; 0 bytes: as many as before.
int set_output_buffering(int mode, std::size_t bytes) noexcept;

/// After a call that may have printed to `stream`, which is this node's: writes standard output out
/// if it holds as much as the program's buffer would.
void end_of_output(FILE* stream) noexcept;

/// fflush() of this node's stdout.
int flush_standard_output() noexcept;

/// Writes out what stdout holds. Touches no global memory. Waits for a thread that is just
/// printing, but not for one that is between flockfile() and funlockfile(): that one has written
/// out what others had printed.
void write_out_standard_output() noexcept;

/// When the process ends: writes out what `stream`, which is this node's, holds. A thread that has
/// locked it may never unlock it, and then goes without its lock, as in exit() of libc.
void write_out_at_end(FILE* stream) noexcept;

/// The calling thread has locked a stream of this node's by flockfile(), or unlocks it.
void stream_locked(FILE* stream) noexcept;
void stream_unlocked(FILE* stream) noexcept;

/// While one lives, no other process of this machine and no other thread of this one writes to
/// standard descriptor `fd` through one. Others than 1 and 2: nothing. May nest.
class WritingTurn {
public:
    explicit WritingTurn(long fd) noexcept;
    WritingTurn(const WritingTurn&) = delete;
    WritingTurn& operator=(const WritingTurn&) = delete;
    ~WritingTurn();

private:
    long fd_ = -1;
};

/// Around a call that may print to `stream`, which is this node's: without a buffer a long line
/// takes several writes. Such a call has the stream's lock, then the turn; any other: nothing.
class UnbufferedCall {
public:
    explicit UnbufferedCall(FILE* stream) noexcept;
    UnbufferedCall(const UnbufferedCall&) = delete;
    UnbufferedCall& operator=(const UnbufferedCall&) = delete;
    ~UnbufferedCall();

private:
    FILE* stream_ = nullptr;
    long fd_ = -1;
};

}  // namespace hiroba::abi
