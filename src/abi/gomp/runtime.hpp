// SPDX-License-Identifier: BSD-3-Clause
// Role: what every OpenMP entry point needs: this process's runtime, and the refusal of constructs
// that are not built.
// Invariant: an entry point converts, calls and returns; all logic is in src/omp.
#pragma once

#include "base/sync_place.hpp"
#include "omp/omp.hpp"
#include "omp/tool/tool.hpp"

namespace hiroba::abi {

// Names for entry points, which lie outside of namespaces.
using hiroba::synchronizes_at;
using hiroba::SyncKind;
using omp::ToolReport;

/// This process's runtime. Before take-over (OpenMP in a library's constructor): one of this
/// process alone, whose teams are of the size that the job's are.
omp::Runtime& runtime() noexcept;
/// At take-over: its threads have ended then.
void end_early_runtime() noexcept;

/// First in entry points of constructs: a tool hears from where the program has called.
[[gnu::always_inline]] inline void note_caller() noexcept {
    if (omp::tool_listens()) [[unlikely]]
        runtime().note_caller(__builtin_return_address(0));
}
/// Reports to a tool what the runtime itself does not see.
inline void tell_tool(omp::ToolReport what, std::uint64_t value = 0) noexcept {
    if (omp::tool_listens()) [[unlikely]]
        runtime().tell_tool(what, value);
}

/// The same of a construct that moves data between devices: it has nothing to do.
inline void tell_target_data(omp::TargetData what, bool nowait) noexcept {
    if (omp::tool_listens()) [[unlikely]]
        runtime().tell_target_data(what, nowait);
}

/// The same of an `error` construct, before its line.
inline void tell_error(bool fatal, const char* text, std::size_t length) noexcept {
    if (omp::tool_listens()) [[unlikely]]
        runtime().tell_error(fatal, text, length);
}

/// Where the calling thread runs, in OMP_AFFINITY_FORMAT, on standard error.
void show_affinity();

/// Ends the job with one line and exit status 78.
[[noreturn]] void refuse(const char* entry_point, const char* construct) noexcept;

/// Memory that every node of the job can reach; nullptr when there is none. `alignment`: a power
/// of two or 0.
void* allocate_by_allocator(std::size_t bytes, std::size_t alignment, bool zero) noexcept;
void free_for_program(void* block) noexcept;
/// Bytes usable at `block`, which came from allocate_by_allocator().
std::size_t usable_bytes(void* block) noexcept;

}  // namespace hiroba::abi
