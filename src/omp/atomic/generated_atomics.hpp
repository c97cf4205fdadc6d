// SPDX-License-Identifier: BSD-3-Clause
// Role: locked instructions in code that the program generates, which no load-time rewriting sees:
// their lock prefix becomes an int3, whose handler carries the instruction out on shared memory.
// Invariant: what follows the int3 is the instruction without its prefix, so the mark means the
// same on every node, and in a copy that the program makes of the code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dsm/dsm.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::omp {

/// From here on marks in code are carried out; `is_code` tells whether the program has generated
/// code there, async-signal-safe. Once, before a program's thread runs.
/// @param sequential  as AtomicHooks::sequential
Result<void> carry_out_generated_atomics(dsm::SharedMemory& memory, bool sequential,
                                         bool (*is_code)(std::uintptr_t address) noexcept);

/// Marks what can be reached from the first byte of `code` by direct branches inside of it, where
/// all of that decodes. Data among the code is not touched. Thread: any.
/// @return how many; what was marked before counts no more
std::size_t mark_generated_atomics(dsm::AddressRange code);

/// In the handler of SIGTRAP: whether `machine`, a ucontext_t, stood behind a mark. It stands
/// behind the instruction then.
bool carry_out_marked(void* machine) noexcept;

}  // namespace hiroba::omp
