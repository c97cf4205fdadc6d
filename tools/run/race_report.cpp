// SPDX-License-Identifier: BSD-3-Clause
// Role: one line a racy place.
#include "tools/run/race_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/line.hpp"

namespace hiroba::tools {

void RaceReport::add(const net::RaceBody& race) {
    if (volume_ == Volume::none || !seen_.insert(race.address).second) return;
    if (volume_ == Volume::some && seen_.size() > lines_max) return;
    if (files_.empty()) files_ = loaded_files(process_);
    std::string text = fmt::format(
        "write-write race: {} bytes at {:#x} ({}) by nodes {} and {}", race.bytes, race.address,
        where(race), std::min(race.writer, race.other), std::max(race.writer, race.other));
    text += fmt::format(", seen by node {} at its {}", race.writer, name_place(files_, race.place));
    say_line(text);
}

std::string RaceReport::where(const net::RaceBody& race) {
    if (race.stack_of != 0) {
        const std::uint32_t thread = race.stack_of - 1;
        return fmt::format("on the stack of thread {} of node {}", thread % threads_per_node_,
                           thread / threads_per_node_);
    }
    auto name = name_address(files_, race.address);
    if (!name) {
        // Read again: the program may have loaded a library since. A process that has ended
        // shows nothing; then what was known stays.
        auto now = loaded_files(process_);
        if (!now.empty()) files_ = std::move(now);
        name = name_address(files_, race.address);
    }
    return name.value_or("in no variable: heap");
}

void RaceReport::finish() const {
    if (volume_ != Volume::some || seen_.size() <= lines_max) return;
    say_line(fmt::format("write-write races at {} more places. Set HIROBA_RACE=all to see them",
                         seen_.size() - lines_max));
}

}  // namespace hiroba::tools
