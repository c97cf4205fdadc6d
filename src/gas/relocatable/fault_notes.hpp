// SPDX-License-Identifier: BSD-3-Clause
// Role: the lines of the latest faults. A Status has two words, which have no room for offsets and
// sizes; Status::rank of a noted fault is the number of its line here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hiroba/gas.hpp"

namespace hiroba::gas {

/// Keeps a line, printf format, for the next 256 noted faults. Thread: any.
/// @return the fault, whose text() is the line
[[gnu::format(printf, 3, 4)]] Status noted(Fault fault, std::uint64_t page, const char* format,
                                           ...) noexcept;

/// The line of a noted fault; none if `status` has none or it was overwritten.
std::optional<std::string> line_of(const Status& status);

}  // namespace hiroba::gas
