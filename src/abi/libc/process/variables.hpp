// SPDX-License-Identifier: BSD-3-Clause
// Role: the environment, one for the job: it lies in global memory, and what a thread of any node
// sets is there for those that synchronize with it.
#pragma once

#include <cstdint>

namespace hiroba::abi {

/// This node's `environ` becomes what was set last. Thread: of the program; may fault global memory
/// in.
void follow_variables() noexcept;
/// On node 0, behind follow_variables(): how often they have been changed.
std::uint64_t variables_version() noexcept;
/// Another node, before a region: what node 0 had when it began. Its threads may have changed it
/// since.
void adopt_variables(char** environment, std::uint64_t version) noexcept;

}  // namespace hiroba::abi
