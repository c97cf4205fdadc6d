// SPDX-License-Identifier: BSD-3-Clause
// Role: code that the program generates: global memory from which instructions may be fetched, on
// every node.
// Invariant: what was code once may be executed for as long as the job runs. Node 0's travels with
// the process's state, before the next region; what another node makes in a region is its own.
#pragma once

#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// Whole pages of global memory.
void allow_code(dsm::AddressRange range) noexcept;

struct CodeList;
/// Node 0: for the others, in global memory; null: there is none.
const CodeList* publish_code() noexcept;
/// Other nodes.
void adopt_code(const CodeList* list) noexcept;

}  // namespace hiroba::abi
