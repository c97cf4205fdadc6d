// SPDX-License-Identifier: BSD-3-Clause
// Role: the argument, environment and auxiliary vectors of the program, laid out once more in
// memory of the caller's choice (global on several nodes). Invariant: a copy holds its own strings;
// it stays valid for the life of the process.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <span>

namespace hiroba::omp {

using AuxiliaryVector = std::span<const ElfW(auxv_t)>;

/// The vector behind the process's original environment, AT_NULL included. Call before the
/// environment is shortened. @param argv  as the kernel laid it out, `argc` entries
AuxiliaryVector auxiliary_vector(int argc, char* const* argv) noexcept;

/// Vectors as the kernel lays them out: argv, nullptr, environment, nullptr, auxiliary vector.
struct ProgramVectors {
    char** argv = nullptr;
    char** environment = nullptr;  ///< == argv + argc + 1, where libc looks for it
};

/// Returns at least `bytes` bytes aligned to 16, or does not return.
using AllocateVectors = void* (*)(std::size_t bytes);

/// Copies the vectors and the strings of the first two. `environment` ends with nullptr.
ProgramVectors copy_vectors(int argc, char* const* argv, char* const* environment,
                            AuxiliaryVector auxiliary, AllocateVectors allocate);

}  // namespace hiroba::omp
