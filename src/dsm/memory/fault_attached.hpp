// SPDX-License-Identifier: BSD-3-Clause
// Role: which address ranges some engine of this process has attached, and where in them code may
// lie, for the fault handler.
// Invariant: readable in a signal handler at any time; a slot's bytes are zero unless it is in use.
#pragma once

#include "dsm/memory/address_map.hpp"

namespace hiroba::dsm {

/// Thread: any. Ranges beyond 4096 are forgotten, which costs only a line of explanation.
void note_attached(AddressRange range) noexcept;
void forget_attached(AddressRange range) noexcept;
/// Async-signal-safe.
bool is_attached(std::uintptr_t address) noexcept;

/// Instructions may be fetched from `range`: such a fault is a miss like any other. For as long as
/// the range it lies in is attached.
void note_executable(AddressRange range) noexcept;
/// Async-signal-safe.
bool is_executable(std::uintptr_t address) noexcept;
/// The guard below a stack was touched at `address`: for the code that tells of the death.
/// Async-signal-safe, as is the question whether this was the last one touched.
void note_guard(std::uintptr_t address) noexcept;
bool is_touched_guard(std::uintptr_t address) noexcept;
/// The machine does not allow code in shared memory.
[[noreturn]] void die_without_execution(AddressRange range, long result) noexcept;

}  // namespace hiroba::dsm
