// SPDX-License-Identifier: BSD-3-Clause
// Role: code that the program generates: global memory from which instructions may be fetched, on
// every node.
// Invariant: what was code once may be executed for as long as the job runs. The node on which it
// is made writes that down in global memory; another one looks there when it has to fetch
// instructions from what is data to it, before the program hears of it.
#pragma once

#include "base/result.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// Global memory; the blocks around it become code with it.
void allow_code(dsm::AddressRange range) noexcept;

/// The program has generated code there, which begins at the first byte: its atomics are the job's
/// from here on.
void mark_atomics_in(dsm::AddressRange code) noexcept;

/// From here on this node finds what others have made code.
Result<void> find_code_of_others();

}  // namespace hiroba::abi
