// SPDX-License-Identifier: BSD-3-Clause
// Role: global memory in core files, for who asks (HIROBA_CORE=memory). By default a core has
// stacks and static data alone: the kernel would walk the whole address space.
// Invariant: the core has what this node has in memory. Blocks that only others have are not in it.
#pragma once

#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// Reads the setting, and lets this process write cores as large as its hard limit. Behind the
/// take-over, before the program begins.
void prepare_core_memory() noexcept;

/// What has ever been written of the heaps is in the core from now on. Async-signal-safe.
void put_memory_into_core(const dsm::AddressMap& map) noexcept;

}  // namespace hiroba::abi
