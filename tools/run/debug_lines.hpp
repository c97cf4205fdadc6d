// SPDX-License-Identifier: BSD-3-Clause
// Role: what the debug information of one file says of an address (libdw).
// Invariant: addresses are those the file was linked at; a file without debug information answers
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hiroba::tools {

/// "cg.c:557", the line of the instruction at `address`; of what a header of the system inlined
/// there, the program's line that called it.
std::optional<std::string> line_of_code(const std::string& path, std::uint64_t address);

/// "cg.c:42", the line where the variable that begins at `address` is defined.
std::optional<std::string> line_of_variable(const std::string& path, std::uint64_t address);

}  // namespace hiroba::tools
