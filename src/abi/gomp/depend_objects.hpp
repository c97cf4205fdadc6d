// SPDX-License-Identifier: BSD-3-Clause
// Role: depend objects as calls of the API are given them: gcc's and clang's look different, and
// the calls do not say whose they are.
#pragma once

#include <vector>

#include "omp/task/dependences.hpp"

namespace hiroba::abi {

/// Waits until the tasks are complete that one with these depend objects would wait for.
/// @param objects  omp_depend_t[count], of gcc's code or clang's
void wait_for_objects(int count, void** objects) noexcept;

}  // namespace hiroba::abi
