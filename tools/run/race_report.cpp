// SPDX-License-Identifier: BSD-3-Clause
// Role: one line a racy place.
#include "tools/run/race_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/line.hpp"

namespace hiroba::tools {

void RaceReport::add(const net::RaceBody& race, const std::string& names) {
    if (volume_ == Volume::none || !seen_.insert(race.address).second) return;
    if (volume_ == Volume::some && seen_.size() > lines_max) return;
    const std::size_t end = names.find('\n');
    const std::string place =
        end == std::string::npos ? names_.place(race.place) : names.substr(end + 1);
    say_line(fmt::format(
        "write-write race: {} bytes at {:#x} ({}) by nodes {} and {}, seen by node {} at its {}",
        race.bytes, race.address, where(race, std::string_view(names).substr(0, end)),
        std::min(race.writer, race.other), std::max(race.writer, race.other), race.writer, place));
}

std::string RaceReport::where(const net::RaceBody& race, std::string_view known) {
    if (race.stack_of != 0) {
        const std::uint32_t thread = race.stack_of - 1;
        return fmt::format("on the stack of thread {} of node {}", thread % plan_.threads_per_node,
                           thread / plan_.threads_per_node);
    }
    return known.empty() ? names_.name(race.address) : std::string(known);
}

void RaceReport::finish() const {
    if (volume_ != Volume::some || seen_.size() <= lines_max) return;
    say_line(fmt::format("write-write races at {} more places. Set HIROBA_RACE=all to see them",
                         seen_.size() - lines_max));
}

}  // namespace hiroba::tools
