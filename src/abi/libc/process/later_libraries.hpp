// SPDX-License-Identifier: BSD-3-Clause
// Role: libraries that the program opens after the start: node 0 opens them where all nodes have
// room, makes their variables global before their initializers run, and writes down what it did;
// the others do the same, without the initializers, when they take over the state of node 0's
// process. Invariant: the list is in global memory; node 0 alone writes it, between regions.
#pragma once

#include "base/result.hpp"

namespace hiroba::abi {

/// One call of dlopen that brought something new; in global memory.
struct LibraryRecord;

/// Node 0, on a thread in no region of several threads: dlopen() of what is not loaded yet, with
/// the search path of `caller`. It stays loaded until the end of the process.
/// @return as dlopen(), with libc's dlerror(); an error when it must be refused
Result<void*> open_library(const char* file, int mode, const void* caller) noexcept;

/// Libc or the loader allocates: the loader may be half way through open_library(), between mapping
/// a library and running its initializers. Costs a load otherwise.
void loader_allocates() noexcept;

/// Node 0: the first record, null when there is none.
const LibraryRecord* opened_libraries() noexcept;

/// Another node: opens what node 0 has opened since the last call. What cannot be the same here
/// ends the job with a line.
void open_as_on_node_0(const LibraryRecord* first) noexcept;

/// This node's handle for one that dlopen() gave node 0; any other handle as it is.
void* own_handle(void* handle) noexcept;

}  // namespace hiroba::abi
