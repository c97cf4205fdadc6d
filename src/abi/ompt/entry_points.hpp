// SPDX-License-Identifier: BSD-3-Clause
// Role: what a first-party tool may ask the runtime for (docs/layers/ompt.md).
#pragma once

#include "omp/tool/ompt.hpp"

namespace hiroba::abi {

/// The runtime's function with the standard's name, or null.
omp::ompt::Callback find_tool_entry_point(const char* name) noexcept;

}  // namespace hiroba::abi
