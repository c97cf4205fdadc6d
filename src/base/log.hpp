// SPDX-License-Identifier: BSD-3-Clause
// Role: what users may watch: lines on stderr, chosen by layer and level (HIROBA_LOG).
// Invariant: async-signal-safe but for set_log(). Silent (the default), a call costs one load and
// one branch. Volume: info once per job, debug once per object, trace once per event.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace hiroba {

enum class LogLevel : std::uint8_t { silent, info, debug, trace };
enum class LogLayer : std::uint8_t { base, net, gas, dsm, omp, abi };
inline constexpr std::size_t log_layers = 6;

/// The level up to which each layer speaks. Relaxed: no data depends on it.
inline std::atomic<LogLevel> log_levels[log_layers] = {};

/// Sets the levels from "level" or "level,layer=level,..."; levels not named stay silent.
///
/// Refuses a layer or level that does not exist, naming it (usage error), and then sets nothing.
/// @thread one at a time, at start-up
Result<void> set_log(std::string_view text);

/// Whether `layer` speaks at `level`.
/// @thread any
inline bool logs(LogLayer layer, LogLevel level) noexcept {
    const auto index = static_cast<std::size_t>(layer);
    return log_levels[index].load(std::memory_order_relaxed) >= level;
}

/// Writes one line "<identity>layer level: text" if logs(layer, level). printf format as say().
/// @thread any; async-signal-safe
[[gnu::format(printf, 3, 4)]] void log(LogLayer layer, LogLevel level, const char* format,
                                       ...) noexcept;

/// Whether the layer that `tag` begins with ("dsm.fault") speaks at level trace.
bool logs_trace(std::string_view tag) noexcept;

/// Reads HIROBA_LOG and HIROBA_TRACE; a text that cannot be read is a usage error. A layer at level
/// trace turns the trace on.
Result<void> set_up_diagnostics();

}  // namespace hiroba
