// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/reports.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/settings.hpp"
#include "tools/line.hpp"
#include "tools/run/stats_table.hpp"

namespace hiroba::tools {

void warn_unknown_settings() {
    std::istringstream names(unknown_settings());
    for (std::string name; names >> name;)
        say_line(
            fmt::format("{} is no variable of hiroba and has no effect. See hiroba info -c", name));
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
    if (setting("HIROBA_STATS") == "0" && race_volume() == RaceReport::Volume::none)
        return [](std::uint32_t) {};
    // While rank 0 lives for sure: the last race of a short program is told when it may have ended.
    return [&report](std::uint32_t rank) {
        if (rank == 0) report.names().files();
    };
}

void sum_up(const RunPlan& plan, const ControlServer& control, RaceReport& races) {
    races.finish();
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
