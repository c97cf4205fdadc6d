// SPDX-License-Identifier: BSD-3-Clause
// Role: recognizes a FILE of another node and gives the caller one of its own in its place.
// Invariant: what is written to the stand-in is in the owner's stream when the call returns: the
// stand-in has no buffer. Files that only this node uses cost one comparison.
#pragma once

#include <stdio.h>

#include <cstddef>

#include "abi/libc/files/file_service.hpp"
#include "abi/libc/files/whole_output.hpp"

namespace hiroba::abi {

/// `stream` itself, or the stand-in for one that belongs to another node; standard input belongs
/// to node 0. Ends the process when more than 256 streams of other nodes are in use.
FILE* near(FILE* stream) noexcept;
bool is_far(FILE* stream) noexcept;

/// near() for a call that writes, in its full expression: what is due goes out behind it.
class Output {
public:
    explicit Output(FILE* stream) noexcept : near_(near(stream)), whole_(near_) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    ~Output() { end_of_output(near_); }
    FILE* near_stream() const noexcept { return near_; }

private:
    FILE* near_;
    UnbufferedCall whole_;
};

/// setvbuf() of a stream of another node, which takes a buffer of its own.
int buffer_far(FILE* stream, int mode, std::size_t bytes) noexcept;

/// Asks the owner of a stream of another node.
std::int64_t ask_owner(FILE* far, StreamCall call, long a, long b, Bytes in,
                       MutableBytes out) noexcept;

/// Reads of a stream of another node: the owner is asked for all bytes at once, not for each.
/// False: it belongs to this node, nothing was done.
bool read_far(void* buffer, std::size_t size, std::size_t count, FILE* stream,
              std::size_t* got) noexcept;
/// Up to `most` bytes, or up to `end`: what fits a message is taken whole.
bool read_line_far(char* text, std::size_t most, int end, FILE* stream, std::size_t* got) noexcept;
/// getdelim() of a stream of another node into `*line`, which realloc() enlarges.
ssize_t get_line_far(char** line, std::size_t* room, int end, FILE* stream) noexcept;

}  // namespace hiroba::abi
