// SPDX-License-Identifier: BSD-3-Clause
// Role: every HIROBA_ variable: its name, default, help line and parser, in one table.
// Invariant: a variable that is not in the table does not exist; `hiroba info -c --all` prints the
// table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace hiroba {

/// One variable users may set. `name` has the HIROBA_ prefix.
struct Setting {
    const char* name;
    const char* default_value;
    const char* help;  ///< one line
    /// "a|b|c": one of these; "size" or "count": a number, maybe "from A to B"; "text": anything.
    const char* values;
    /// `hiroba info -c` and the manual show it. The others are for tests and for builders of
    /// runtimes.
    bool is_usual = true;
};

/// All settings, in alphabetical order. Static storage.
std::span<const Setting> all_settings() noexcept;

/// The value of `name` from the environment, or its default (also when it is set but empty).
/// `name` must be in the table. Reads getenv: call at start-up only, never from a fault handler.
std::string_view setting(const char* name) noexcept;

/// As above, as a number; size suffixes K, M, G, T (powers of 1024) and fractions ("1.5G") allowed.
Result<std::uint64_t> setting_number(const char* name);

/// Refuses the first setting whose value its `values` do not allow, naming both. For start-up.
Result<void> check_settings();

/// Parses "64", "1.5G", "16K" (suffixes in either case, fractions rounded down); refuses anything
/// else with a usage error naming `what`.
Result<std::uint64_t> parse_size(std::string_view text, const char* what);

/// Names in the environment that start with HIROBA_ and are not in the table nor internal
/// (internal: HIROBA_JOB_*, set by the launcher), with spaces between. Each is worth one warning.
std::string unknown_settings();

}  // namespace hiroba
