// SPDX-License-Identifier: BSD-3-Clause
// Role: how large the job's address space is, from settings and limits alone.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// The sizes of the global address space for this job, from the settings and the stack limit.
/// Does not allocate, except for an error's text. `block_bytes` is left at its default.
Result<dsm::SpaceShape> space_shape(std::uint32_t nodes, std::uint32_t threads_per_node);

}  // namespace hiroba::abi
