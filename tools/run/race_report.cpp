// SPDX-License-Identifier: BSD-3-Clause
// Role: one line a racy place.
#include "tools/run/race_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/line.hpp"

namespace hiroba::tools {

void RaceReport::add(const net::RaceBody& race, const std::string& name) {
    if (volume_ == Volume::none || !seen_.insert(race.address).second) return;
    if (volume_ == Volume::some && seen_.size() > lines_max) return;
    say_line(fmt::format("write-write race: {} bytes at {:#x} ({}) by nodes {} and {}", race.bytes,
                         race.address, name.empty() ? names_.name(race.address) : name,
                         std::min(race.writer, race.other), std::max(race.writer, race.other)));
}

void RaceReport::finish() const {
    if (volume_ != Volume::some || seen_.size() <= lines_max) return;
    say_line(fmt::format("write-write races at {} more places. Set HIROBA_RACE=all to see them",
                         seen_.size() - lines_max));
}

}  // namespace hiroba::tools
