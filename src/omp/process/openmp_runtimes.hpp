// SPDX-License-Identifier: BSD-3-Clause
// Role: finds OpenMP runtimes beside this one. Two of them in a process each start their own
// threads, and regions of the other would run on one node, in silence, with private state.
#pragma once

#include <span>

#include "base/result.hpp"
#include "omp/process/loaded_objects.hpp"

namespace hiroba::omp {

/// Refuses, with an environment error that names the file, a loaded object other than
/// `own_address`'s that defines the entry points of an OpenMP runtime (GNU's or LLVM's), whatever
/// it is called.
Result<void> refuse_other_runtimes(std::span<const LoadedObject> objects, const void* own_address);

}  // namespace hiroba::omp
