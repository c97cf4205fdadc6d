// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/reports.hpp"

#include <fmt/format.h>
#include <unistd.h>

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

void sum_up(const RunPlan& plan, const ControlServer& control, const RaceReport& races) {
    races.finish();
    if (setting("HIROBA_STATS") == "0") return;
    const std::string table = stats_table(control, plan.nodes);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, table.data(), table.size());
}

}  // namespace hiroba::tools
