// SPDX-License-Identifier: BSD-3-Clause
// Role: finds the functions of an object that may have locked instructions, without decoding it:
// most of a system library's code has none, and every start of the program would pay for it.
// Invariant: a function with a lock prefix is among them; some of those found have none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dsm/memory/address_map.hpp"

namespace hiroba::omp {

/// Where each of them lies, ascending. None: the object has no table of its functions
/// (PT_GNU_EH_FRAME), so all of its code has to be decoded.
/// @param bias  what the loader added to the addresses in the file
std::optional<std::vector<dsm::AddressRange>> locked_functions(std::uintptr_t bias);

}  // namespace hiroba::omp
