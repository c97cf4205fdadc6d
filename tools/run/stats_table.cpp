// SPDX-License-Identifier: BSD-3-Clause
// Role: lays out the counters.
#include "tools/run/stats_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace hiroba::tools {

namespace {

struct Row {
    std::string name;
    std::vector<std::optional<std::uint64_t>> cells;
};

Row& row_of(std::vector<Row>& rows, const std::string& name, std::uint32_t nodes) {
    const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.name == name; });
    if (found != rows.end()) return *found;
    rows.push_back({name, std::vector<std::optional<std::uint64_t>>(nodes)});
    return rows.back();
}

}  // namespace

std::string stats_table(const ControlServer& control, std::uint32_t nodes) {
    std::vector<Row> rows;
    for (std::uint32_t rank = 0; rank < nodes; ++rank) {
        if (const auto regions = control.regions(rank))
            row_of(rows, "parallel_regions", nodes).cells[rank] = *regions;
        for (const ReportedCount& count : control.counts(rank)) {
            auto& cell = row_of(rows, count.name, nodes).cells[rank];
            cell = cell.value_or(0) + count.value;
        }
    }
    if (rows.empty()) return "";
    std::size_t width = 7;
    for (const Row& row : rows) width = std::max(width, row.name.size());
    std::string table = fmt::format("{:<{}}", "counter", width);
    for (std::uint32_t rank = 0; rank < nodes; ++rank)
        table += fmt::format(" {:>12}", fmt::format("node {}", rank));
    table += fmt::format(" {:>13}\n", "all");
    for (const Row& row : rows) {
        table += fmt::format("{:<{}}", row.name, width);
        std::uint64_t sum = 0;
        for (const auto& cell : row.cells) {
            sum += cell.value_or(0);
            table += fmt::format(" {:>12}", cell ? fmt::format("{}", *cell) : "-");
        }
        table += fmt::format(" {:>13}\n", sum);
    }
    return table;
}

}  // namespace hiroba::tools
