// SPDX-License-Identifier: BSD-3-Clause
// Role: the table of `hiroba perf openmp` as a page. It refers to nothing outside of itself.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "tools/build.hpp"
#include "tools/perf/openmp/table.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr const char* head = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<title>hiroba perf openmp</title>
<style>
body { font-family: sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; }
th, td { padding: .15em .7em; text-align: right; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
th { vertical-align: bottom; }
td.name, th.name { text-align: left; }
tr.group th { text-align: left; padding-top: 1.2em; }
td.bar { text-align: left; border-left: 1px solid #888; width: 16em; }
td.bar div { height: .8em; background: #c25b4e; }
td.bar div.shorter { background: #4e9a63; }
</style>
</head>
)";

std::string escaped(const std::string& text) {
    std::string out;
    for (const char each : text) {
        switch (each) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            default: out += static_cast<unsigned char>(each) < ' ' ? ' ' : each;
        }
    }
    return out;
}

std::string processor_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "an unnamed processor";
}

/// When and on what the figures were taken.
std::string circumstances() {
    utsname system{};
    ::uname(&system);
    const time_t now = ::time(nullptr);
    tm day{};
    ::gmtime_r(&now, &day);
    return fmt::format("{:04}-{:02}-{:02}, {} processors of {}, {} {}, hiroba {}",
                       day.tm_year + 1900, day.tm_mon + 1, day.tm_mday,
                       std::thread::hardware_concurrency(), processor_model(), system.sysname,
                       system.release, build_version);
}

/// As long as the ratio's logarithm: a tenfold is a fifth of the room.
std::string bar(double ratio) {
    if (ratio <= 0) return "";
    const double share = std::clamp(std::abs(std::log10(ratio)) / 5, 0.005, 1.0);
    return fmt::format("<div{} style=\"width: {:.1f}%\"></div>",
                       ratio < 1 ? " class=\"shorter\"" : "", share * 100);
}

std::string ratio_cell(double ratio) {
    return ratio > 0 ? fmt::format("<td>{:.2f}</td>", ratio) : "<td>–</td>";
}

std::string row_of(const OpenmpTable& table, std::size_t at) {
    const Row& row = table.sides[0].rows[at];
    const RowFigures ours = figures_of(row);
    std::string cells = fmt::format("<td class=\"name\">{}</td>", escaped(row.name));
    for (const Side& side : table.sides) {
        const RowFigures each = figures_of(side.rows[at]);
        cells += fmt::format("<td>{:.3f}</td><td>{:.3f}</td>", each.least, each.median);
        if (&side == &table.sides[0]) continue;
        cells += ratio_cell(times_of(ours.least, each.least)) +
                 ratio_cell(times_of(ours.median, each.median));
    }
    const double ratio = times_of(ours.least, figures_of(table.sides[1].rows[at]).least);
    return fmt::format("<tr class=\"row\">{}<td>{}</td><td class=\"bar\">{}</td></tr>\n", cells,
                       row.processes, bar(ratio));
}

std::string titles(const OpenmpTable& table) {
    std::string above = "<tr><th class=\"name\" rowspan=\"2\">µs a construct</th>", below = "<tr>";
    for (const Side& side : table.sides) {
        const bool is_first = &side == &table.sides[0];
        above += fmt::format("<th colspan=\"{}\">{}</th>", is_first ? 2 : 4, escaped(side.name));
        below += "<th>least</th><th>median</th>";
        if (!is_first) below += "<th>hiroba, times least</th><th>times median</th>";
    }
    return above + "<th rowspan=\"2\">nodes that ran it</th>" +
           "<th class=\"name\" rowspan=\"2\">times libgomp, least; a fifth of the width is "
           "tenfold</th></tr>\n" +
           below + "</tr>\n";
}

}  // namespace

std::string openmp_page(const OpenmpTable& table) {
    const std::size_t columns = 3 + 2 + (table.sides.size() - 1) * 4;
    std::string body = fmt::format(
        "<body>\n<h1>OpenMP over {}: {} node{} of {} thread{}</h1>\n<p>{}. {} round{} by turns; "
        "taken by <code>{}</code></p>\n<table>\n<thead>\n{}</thead>\n<tbody>\n",
        escaped(table.provider), table.nodes, table.nodes == 1 ? "" : "s", table.threads,
        table.threads == 1 ? "" : "s", escaped(circumstances()), table.rounds,
        table.rounds == 1 ? "" : "s", escaped(table.command), titles(table));
    std::string group;
    for (std::size_t i = 0; i < table.sides[0].rows.size(); ++i) {
        const Row& row = table.sides[0].rows[i];
        if (row.group != group) {
            group = row.group;
            body += fmt::format("<tr class=\"group\"><th colspan=\"{}\">{}</th></tr>\n", columns,
                                escaped(group));
        }
        body += row_of(table, i);
    }
    return head + body + "</tbody>\n</table>\n</body>\n</html>\n";
}

}  // namespace hiroba::tools::perf_parts
