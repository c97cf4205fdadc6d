// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/openmp/table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "tools/json.hpp"
#include "tools/perf/samples.hpp"

namespace hiroba::tools::perf_parts {
namespace {

/// Below, a figure is what is left of the clock and of the delay that was taken off.
constexpr double us_min = 0.005;

double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string ratio_text(double ratio) {
    if (ratio <= 0) return "-";
    return ratio < 100 ? fmt::format("{:.2f}", ratio) : fmt::format("{:.0f}", ratio);
}

Json side_object(const Side& side, std::size_t row) {
    const RowFigures figures = figures_of(side.rows[row]);
    return Json::object({{"name", side.name},
                         {"least_us", rounded(figures.least)},
                         {"median_us", rounded(figures.median)},
                         {"p90_us", rounded(figures.p90)},
                         {"samples", static_cast<std::uint64_t>(side.rows[row].us.size())},
                         {"processes", side.rows[row].processes}});
}

}  // namespace

RowFigures figures_of(const Row& row) {
    return {quantile(row.us, 0), quantile(row.us, 0.5), quantile(row.us, 0.9)};
}

double times_of(double ours, double other) {
    return ours >= us_min && other >= us_min ? ours / other : 0;
}

void print_openmp_table(const OpenmpTable& table) {
    fmt::print(
        "openmp over {}: {} node{}, {} thread{} each, {} round{} by turns; µs a construct, ratios "
        "of hiroba's\n",
        table.provider, table.nodes, table.nodes == 1 ? "" : "s", table.threads,
        table.threads == 1 ? "" : "s", table.rounds, table.rounds == 1 ? "" : "s");
    fmt::print("{:<44}", "");
    for (const Side& side : table.sides)
        fmt::print("{:>{}}", side.name, &side == &table.sides[0] ? 22 : 38);
    fmt::print("{:>7}\n{:<44}", "nodes", "");
    for (const Side& side : table.sides)
        fmt::print("{:>11}{:>11}{}", "least", "median",
                   &side == &table.sides[0] ? "" : "   ratio   ratio");
    fmt::print("\n");
    std::string group;
    for (std::size_t i = 0; i < table.sides[0].rows.size(); ++i) {
        const Row& row = table.sides[0].rows[i];
        if (row.group != group) fmt::print("{}\n", group = row.group);
        fmt::print("  {:<42}", row.name);
        const RowFigures ours = figures_of(row);
        for (const Side& side : table.sides) {
            const RowFigures each = figures_of(side.rows[i]);
            fmt::print("{:>11.3f}{:>11.3f}", each.least, each.median);
            if (&side == &table.sides[0]) continue;
            fmt::print("{:>8}{:>8}", ratio_text(times_of(ours.least, each.least)),
                       ratio_text(times_of(ours.median, each.median)));
        }
        fmt::print("{:>7}\n", row.processes);
    }
}

void print_openmp_json(const OpenmpTable& table) {
    for (std::size_t i = 0; i < table.sides[0].rows.size(); ++i) {
        const Row& row = table.sides[0].rows[i];
        Json sides = Json::array();
        for (const Side& side : table.sides) sides.push_back(side_object(side, i));
        const RowFigures ours = figures_of(row), libgomp = figures_of(table.sides[1].rows[i]);
        const auto ratio = [](double times) { return times > 0 ? Json(rounded(times)) : Json(); };
        fmt::print("{}\n",
                   Json::object({{"test", "openmp"},
                                 {"row", row.name},
                                 {"group", row.group},
                                 {"provider", table.provider},
                                 {"nodes", table.nodes},
                                 {"threads", table.threads},
                                 {"rounds", table.rounds},
                                 {"sides", sides},
                                 {"ratio_least", ratio(times_of(ours.least, libgomp.least))},
                                 {"ratio_median", ratio(times_of(ours.median, libgomp.median))}})
                       .dump());
    }
}

}  // namespace hiroba::tools::perf_parts
