// SPDX-License-Identifier: BSD-3-Clause
#include "tools/predict/machine_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace hiroba::tools {

namespace {

constexpr std::uint32_t nodes_most = 256, threads_most = 256;

std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t comma = text.find(',', begin);
        parts.push_back(text.substr(begin, comma - begin));
        if (comma == std::string::npos) return parts;
        begin = comma + 1;
    }
}

/// A number that is followed by `unit` and nothing else.
std::optional<double> number(std::string_view text, std::string_view unit) {
    if (!text.ends_with(unit)) return std::nullopt;
    text.remove_suffix(unit.size());
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (!(value >= 0) || value > 1e9) return std::nullopt;
    return value;
}

std::optional<std::uint32_t> whole(std::string_view text, std::uint32_t most) {
    std::uint32_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || value == 0 || value > most)
        return std::nullopt;
    return value;
}

Error wrong(std::string text) { return {ErrorKind::usage, std::move(text)}; }

}  // namespace

const std::vector<Wire>& wires() {
    static const std::vector<Wire> table = {{"shm", 0, 1000, 0, true}, {"1GbE", 25, .117, 3},
                                            {"10GbE", 10, 1.17, 3},    {"25GbE", 7, 2.9, 3},
                                            {"100GbE", 1.8, 11.6, .3}, {"hdr-ib", .9, 24, .3}};
    return table;
}

Result<Wire> wire_of(const std::string& text) {
    for (const Wire& wire : wires())
        if (wire.name == text) return wire;
    const auto parts = parts_of(text);
    if (parts.size() == 3) {
        const auto latency = number(parts[0], "us"), bandwidth = number(parts[1], "GB/s"),
                   message = number(parts[2], "us");
        if (latency && bandwidth && message && *bandwidth > 0)
            return Wire{text, *latency, *bandwidth, *message};
    }
    std::string names;
    for (const Wire& wire : wires()) names += (names.empty() ? "" : ", ") + wire.name;
    return wrong(
        fmt::format("--wire {}: one of {}, or latency, bandwidth and a processor's time "
                    "for a message as 7us,2.9GB/s,3us",
                    text, names));
}

Result<Changes> changes_of(const std::string& text) {
    Changes changes;
    if (text.empty()) return changes;
    const std::pair<std::string_view, double*> factors[] = {
        {"latency", &changes.latency}, {"bandwidth", &changes.bandwidth},
        {"message", &changes.message}, {"computing", &changes.computing},
        {"misses", &changes.misses},   {"bytes", &changes.bytes},
        {"locks", &changes.locks}};
    for (const std::string& part : parts_of(text)) {
        if (part == "no-false-sharing") {
            changes.without_false_sharing = true;
            continue;
        }
        const std::size_t at = part.find_first_of("/*=");
        const std::string name = part.substr(0, at);
        const std::string value = at == std::string::npos ? "" : part.substr(at + 1);
        const char sign = at == std::string::npos ? ' ' : part[at];
        const auto factor = std::ranges::find(factors, name, [](const auto& e) { return e.first; });
        const auto amount = number(value, "");
        const auto threads = whole(value, threads_most);
        if (name == "threads" && sign == '=' && threads)
            changes.threads = *threads;
        else if (factor != std::end(factors) && sign != '=' && amount && *amount > 0)
            *factor->second *= sign == '/' ? 1 / *amount : *amount;
        else
            return wrong(fmt::format(
                "--what-if {}: latency, bandwidth, message, computing, misses, bytes or locks with "
                "/ or * and a number above 0, threads=N up to {}, or no-false-sharing",
                part, threads_most));
    }
    return changes;
}

void change(Wire& wire, const Changes& changes) {
    wire.latency_us *= changes.latency;
    wire.gigabytes_s *= changes.bandwidth;
    wire.message_us *= changes.message;
}

void change(WorkTable& table, const Changes& changes) {
    for (Stretch& stretch : table.stretches)
        for (ThreadWork& work : stretch.threads) {
            work.computing_ns *= changes.computing;
            work.memory_ns *= changes.misses;
            for (auto& [node, asked] : work.of_node) {
                asked.exchanges *= changes.misses;
                asked.bytes *= changes.misses * changes.bytes;
            }
            for (auto& [key, use] : work.locks) {
                use.takes *= changes.locks;
                use.held_ns *= changes.locks;
            }
        }
}

Result<std::vector<std::uint32_t>> node_counts(const std::string& text) {
    std::vector<std::uint32_t> counts;
    for (const std::string& part : parts_of(text)) {
        const auto count = whole(part, nodes_most);
        if (!count)
            return wrong(
                fmt::format("--nodes {}: numbers from 1 to {}, as 2,4,8", text, nodes_most));
        counts.push_back(*count);
    }
    return counts;
}

}  // namespace hiroba::tools
