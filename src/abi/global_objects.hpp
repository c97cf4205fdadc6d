// SPDX-License-Identifier: BSD-3-Clause
// Role: what makes a loaded object the job's: its variables global, its atomics rewritten, its code
// on stacks allowed.
// Invariant: all nodes, in one order, before any of the object's code runs here.
#pragma once

#include <span>

#include "abi/world.hpp"
#include "base/result.hpp"
#include "omp/process/loaded_objects.hpp"

namespace hiroba::abi {

/// Rewrites the atomics in the code of those objects that are global. Their variables are global
/// already.
Result<void> rewrite_atomics(World& node, std::span<const omp::LoadedObject> objects);

/// Stacks become executable when the first object asks for it, as the loader has it with its own.
void allow_code_on_stacks(World& node, std::span<const omp::LoadedObject> objects);

/// Node 0 prints which libraries have a state of their own on every node.
void tell_private_libraries(const World& node, std::span<const omp::LoadedObject> objects) noexcept;

/// Makes global what the loader has mapped since: libraries, in the one order all nodes share, node
/// 0 first. All of the above for them.
Result<void> adopt_libraries(World& node, std::span<const omp::LoadedObject> objects);

}  // namespace hiroba::abi
