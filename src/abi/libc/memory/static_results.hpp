// SPDX-License-Identifier: BSD-3-Clause
// Role: copies in global memory of what libc returns in memory of its own.
#pragma once

namespace hiroba::abi {

/// The job's copy of a time zone's name, which stays. Without room for another one: `name`.
const char* keep_zone(const char* name) noexcept;

}  // namespace hiroba::abi
