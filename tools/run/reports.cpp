// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/reports.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "tools/line.hpp"
#include "tools/run/stats_table.hpp"

namespace hiroba::tools {

namespace {

/// "solve()" for the place of a region in it; where its function is not known, as the place is
/// called.
std::string region_of(const std::string& place) {
    const std::vector<std::string> functions = functions_of_region(place);
    if (functions.size() == 2 && !functions[1].empty())
        return functions[1].find('(') == std::string::npos ? functions[1] + "()" : functions[1];
    const std::size_t at = place.find(" at ");
    const std::string named = at == std::string::npos ? place : place.substr(at + 4);
    return named.substr(0, named.find(" ("));
}

/// Functions whose regions node 0 says it has kept, those of the longest time first.
std::vector<std::string> functions_that_stayed(const ControlServer& control, RaceReport& races) {
    std::map<std::string, std::uint64_t> times;
    for (const ReportedPlace& reported : control.places(0))
        for (const ReportedCount& count : reported.counts)
            if (count.name == "stayed_us")
                times[region_of(reported.name.empty() ? races.names().place(reported.place)
                                                      : reported.name)] += count.value;
    std::vector<std::pair<std::string, std::uint64_t>> sorted(times.begin(), times.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<std::string> names;
    names.reserve(sorted.size());
    for (const auto& [name, time] : sorted) names.push_back(name);
    return names;
}

/// Node 0 tells of regions that have stayed where they made up a good part of the time.
void tell_stayed_regions(const ControlServer& control, RaceReport& races) {
    constexpr std::size_t named = 3;
    if (setting("HIROBA_REGIONS") == "turns") return;
    std::vector<std::string> names = functions_that_stayed(control, races);
    if (names.empty()) return;
    const std::size_t more = names.size() - std::min(names.size(), named);
    names.resize(names.size() - more);
    say_line(fmt::format(
        "regions of {}{} stayed on node 0, where they took less time "
        "(HIROBA_REGIONS=spread spreads them)",
        fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more functions", more)));
}

}  // namespace

void warn_unknown_settings() {
    std::istringstream names(unknown_settings());
    for (std::string name; names >> name;)
        say_line(fmt::format(
            "{} is no variable of hiroba and has no effect. See hiroba info -c --all", name));
}

RaceReport::Volume race_volume() {
    const std::string_view races = setting("HIROBA_RACE");
    return races == "off"   ? RaceReport::Volume::none
           : races == "all" ? RaceReport::Volume::all
                            : RaceReport::Volume::some;
}

ControlServer::RaceSink race_sink(RaceReport& report) {
    return
        [&report](const net::RaceBody& race, const std::string& name) { report.add(race, name); };
}

ControlServer::AttachSink attach_sink(RaceReport& report) {
    // While rank 0 lives for sure: the last race of a short program is told when it may have ended,
    // and so are the regions that stayed.
    return [&report](std::uint32_t rank) {
        if (rank == 0) report.names().files();
    };
}

void sum_up(const RunPlan& plan, const ControlServer& control, RaceReport& races) {
    races.finish();
    tell_stayed_regions(control, races);
    const std::string wanted(setting("HIROBA_STATS"));
    if (wanted == "0") return;
    const std::vector<LoadedFile>& files = races.names().files();
    constexpr std::string_view to_file = "json:";
    if (wanted.starts_with(to_file)) {
        const std::string path = wanted.substr(to_file.size());
        std::ofstream file(path);
        if (!(file << stats_json(control, plan.nodes, files)).flush())
            say_line(fmt::format("HIROBA_STATS={}: {} cannot be written. Name another file", wanted,
                                 path));
        return;
    }
    std::string table = stats_table(control, plan.nodes);
    if (wanted == "full") table += "\n" + places_table(control, plan.nodes, files);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, table.data(), table.size());
}

}  // namespace hiroba::tools
