// SPDX-License-Identifier: BSD-3-Clause
// Role: tells whether a program's threads can tell each other apart from region to region.
#pragma once

#include <vector>

#include "omp/process/loaded_objects.hpp"

namespace hiroba::omp {

/// Whether an object whose state is the program's may use data that each thread has for itself, or
/// what the system keeps of each, without a call that is noted when it is made. A thread of one
/// number must then be the same from region to region.
bool tell_threads_apart(const std::vector<LoadedObject>& objects) noexcept;

}  // namespace hiroba::omp
