// SPDX-License-Identifier: BSD-3-Clause
// Role: where a first-party tool may come from: the program, or OMP_TOOL_LIBRARIES.
// Invariant: a library named there serves the node: what it keeps is the node's own, and what it
// calls is not the program's (base/own_libraries.hpp).
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "omp/tool/ompt.hpp"

namespace hiroba::omp {

/// Writes what OMP_TOOL_VERBOSE_INIT asks for: nothing, or to standard output, standard error or a
/// file. Each node writes for itself; a file's name gets ".<node>" on several.
class ToolLog {
public:
    void open(const char* where, std::uint32_t node, std::uint32_t nodes) noexcept;
    [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) noexcept;
    void close() noexcept;

private:
    int descriptor_ = -1;
    bool closes_ = false;
    std::uint32_t node_ = 0;
};

struct ToolCandidate {
    ompt::StartTool start = nullptr;
    std::string path;        ///< empty: in the program, or a library it was started with
    void* handle = nullptr;  ///< of dlopen()
    bool is_library() const noexcept { return !path.empty(); }
};

/// The objects that have an ompt_start_tool(), in the standard's order; none with
/// OMP_TOOL=disabled. Opens the libraries.
/// Thread: before the program's first thread.
std::vector<ToolCandidate> find_tools(ToolLog& log, std::uint32_t node, std::uint32_t nodes);

}  // namespace hiroba::omp
