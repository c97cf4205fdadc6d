// SPDX-License-Identifier: BSD-3-Clause
// Role: tells whether a program's threads can tell each other apart from region to region.
#pragma once

#include <vector>

#include "omp/process/loaded_objects.hpp"

namespace hiroba::omp {

/// Whether an object whose state is the program's has data that each thread has for itself, or asks
/// libc or a compiler's runtime for what they keep of each: data by key, its number, its mask. A
/// thread of one number must then be the same from region to region.
bool tell_threads_apart(const std::vector<LoadedObject>& objects) noexcept;

}  // namespace hiroba::omp
