// SPDX-License-Identifier: BSD-3-Clause
// Role: the composition root: the one place of a process where its node is put together.
// Invariant: only start.cpp calls it, so that what reads world() and what makes it form no circle.
#pragma once

#include <span>

#include "base/result.hpp"
#include "net/bootstrap/job.hpp"
#include "omp/process/loaded_objects.hpp"

namespace hiroba::abi {

/// Puts a node that is alone together: OpenMP on the process's own memory.
Result<void> assemble_alone(const net::JobInfo& job);

/// Puts one of several nodes together and makes the program's memory global. Collective. On return
/// world() is set, and every node has come as far. Fails with one line fit for die().
/// @param objects  everything loaded; its global part becomes images of the address map
Result<void> assemble_node(const net::JobInfo& job, std::span<const omp::LoadedObject> objects);

}  // namespace hiroba::abi
