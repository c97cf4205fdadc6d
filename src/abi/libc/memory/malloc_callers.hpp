// SPDX-License-Identifier: BSD-3-Clause
// Role: whose an allocation is, judged by the code that asked for it.
// Invariant: never allocates and takes no lock of ours, for it runs inside malloc. Objects present
// at the first call are never unloaded, so their addresses are kept; for others the loader is
// asked.
#pragma once

#include <cstdint>

namespace hiroba::abi {

enum class Caller : std::uint8_t {
    program,           ///< the program, its libraries, libstdc++, code in no object: global memory
    language_runtime,  ///< libgfortran & co: private to the node before take-over, global after
    system,            ///< libc, the loader, this library: always private to the node
};

/// Remembers the code of all objects loaded now. Once, before the first caller_of().
void learn_callers() noexcept;

/// @param return_address  in the caller
Caller caller_of(const void* return_address) noexcept;

}  // namespace hiroba::abi
