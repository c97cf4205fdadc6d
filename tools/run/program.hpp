// SPDX-License-Identifier: BSD-3-Clause
// Role: the program a job is to run: where it lies, and whether it can be taken over.
// Invariant: a program that could only run as N separate copies is refused, never run.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace hiroba::tools {

/// Finds `name` as execvp does (a name with a slash is itself). A usage error when there is none;
/// an environment error when it may not be executed.
Result<std::string> find_program(const std::string& name);

/// Refuses, with an environment error, what the runtime cannot take over: scripts, other formats
/// and processors, statically linked programs, a static libgomp inside, sanitizers, setuid.
Result<void> check_can_take_over(const std::string& path);

/// Refuses what several nodes would not load at equal addresses.
Result<void> check_can_be_fixed(const std::string& path);

/// Refuse a program of a compiler newer than the runtime `library`, by the names it asks for and by
/// their version nodes: the loader, which resolves all of them at the start, would end it.
Result<void> check_names(const std::string& path, const std::string& library);
Result<void> check_versions(const std::string& path, const std::string& library);

/// All entry points of OpenMP that the runtime `library` refuses.
std::vector<std::string> all_refused_entry_points(const std::string& library);

/// The entry points of OpenMP that `path` asks for by name and the runtime `library` refuses, in
/// the order of the program's symbols.
std::vector<std::string> refused_entry_points(const std::string& path, const std::string& library);

/// Whether the program itself asks for entry points of an OpenMP runtime.
bool calls_openmp(const std::string& path);

/// Whether it is linked with an MPI library.
bool calls_mpi(const std::string& path);

/// The library of ours, whose programs enter main on every node, that it is linked with; or empty.
std::string spmd_library_of(const std::string& path);

/// True for a program linked with libacp: its ranks are processes that each run main.
bool is_acp_program(const std::string& path);

}  // namespace hiroba::tools
