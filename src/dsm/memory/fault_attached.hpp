// SPDX-License-Identifier: BSD-3-Clause
// Role: which address ranges some engine of this process has attached, for the fault handler.
// Invariant: readable in a signal handler at any time; a slot's bytes are zero unless it is in use.
#pragma once

#include "dsm/memory/address_map.hpp"

namespace hiroba::dsm {

/// Thread: any. Ranges beyond 4096 are forgotten, which costs only a line of explanation.
void note_attached(AddressRange range) noexcept;
void forget_attached(AddressRange range) noexcept;
/// Async-signal-safe.
bool is_attached(std::uintptr_t address) noexcept;

}  // namespace hiroba::dsm
