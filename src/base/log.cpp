// SPDX-License-Identifier: BSD-3-Clause
// Role: the text of HIROBA_LOG, and the lines it asks for.
#include "base/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <optional>
#include <span>
#include <string>

#include "base/fatal.hpp"
#include "base/line.hpp"
#include "base/settings.hpp"
#include "base/trace.hpp"

namespace hiroba {
namespace {

constexpr std::array<std::string_view, 4> level_names = {"silent", "info", "debug", "trace"};
constexpr std::array<std::string_view, log_layers> layer_names = {"base", "net", "gas",
                                                                  "dsm",  "omp", "abi"};
using Levels = std::array<LogLevel, log_layers>;

std::optional<std::size_t> place_of(std::span<const std::string_view> names,
                                    std::string_view name) noexcept {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.begin());
}

/// One part of the text: "level" for all layers or "layer=level".
bool read_part(std::string_view part, Levels& levels) noexcept {
    const std::size_t equals = part.find('=');
    const bool all = equals == std::string_view::npos;
    const auto level = place_of(level_names, all ? part : part.substr(equals + 1));
    if (!level) return false;
    if (all) {
        levels.fill(static_cast<LogLevel>(*level));
        return true;
    }
    const auto layer = place_of(layer_names, part.substr(0, equals));
    if (!layer) return false;
    levels[*layer] = static_cast<LogLevel>(*level);
    return true;
}

}  // namespace

Result<void> set_log(std::string_view text) {
    Levels levels{};
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::string_view part = text.substr(0, comma);
        if (!read_part(part, levels)) {
            return Error{ErrorKind::usage,
                         "HIROBA_LOG: '" + std::string(part) +
                             "' is neither a level (silent, info, debug, trace) nor layer=level "
                             "(base, net, gas, dsm, omp, abi)"};
        }
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    for (std::size_t i = 0; i < log_layers; ++i) {
        log_levels[i].store(levels[i], std::memory_order_relaxed);
    }
    return {};
}

void log(LogLayer layer, LogLevel level, const char* format, ...) noexcept {
    if (!logs(layer, level)) return;
    Line line;
    line.append(identity());
    line.append(layer_names[static_cast<std::size_t>(layer)]);
    line.append(" ");
    line.append(level_names[static_cast<std::size_t>(level)]);
    line.append(": ");
    std::va_list arguments;
    va_start(arguments, format);
    line.append_format(format, arguments);
    va_end(arguments);
    line.write_to(STDERR_FILENO);
}

bool logs_trace(std::string_view tag) noexcept {
    const auto layer = place_of(layer_names, tag.substr(0, tag.find('.')));
    return layer && logs(static_cast<LogLayer>(*layer), LogLevel::trace);
}

Result<void> set_up_diagnostics() {
    if (auto set = set_log(setting("HIROBA_LOG")); !set) return set;
    const bool any_traces = std::ranges::any_of(log_levels, [](const auto& level) {
        return level.load(std::memory_order_relaxed) == LogLevel::trace;
    });
    set_trace(any_traces || setting("HIROBA_TRACE") == "1");
    return {};
}

}  // namespace hiroba
