// SPDX-License-Identifier: BSD-3-Clause
// Role: one line a racy place.
#include "tools/run/race_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/settings.hpp"
#include "omp/process/stack_sizes.hpp"
#include "tools/line.hpp"
#include "tools/run/unwinding.hpp"

namespace hiroba::tools {

std::vector<std::string> functions_of_region(std::string_view place) {
    // What gcc and clang call a region's function, demangled or not.
    std::size_t end = std::string_view::npos;
    for (const std::string_view mark : {"._omp_fn.", ".omp_outlined"})
        end = std::min(end, place.find(mark));
    if (end == std::string_view::npos) return {};
    // "barrier at main.c:7 (NAME", or "barrier at NAME" where no line is known.
    const std::size_t open = place.find(" (");
    const std::size_t at = place.find(" at ");
    const std::size_t begin = open != std::string_view::npos ? open + 2
                              : at != std::string_view::npos ? at + 4
                                                             : 0;
    const std::size_t behind =
        open != std::string_view::npos ? place.rfind(')') : place.find('+', end);
    std::string_view maker = place.substr(begin, end - begin);
    constexpr std::string_view clone = " [clone ";
    if (maker.ends_with(clone)) maker.remove_suffix(clone.size());
    return {std::string(place.substr(begin, behind - begin)), std::string(maker)};
}

void RaceReport::add(const net::RaceBody& race, const std::string& names) {
    if (volume_ == Volume::none || !seen_.insert(race.address).second) return;
    if (volume_ == Volume::some && seen_.size() > lines_max) return;
    told_.push_back(race);
    const std::size_t end = names.find('\n');
    const std::string place =
        end == std::string::npos ? names_.place(race.place) : names.substr(end + 1);
    const std::string what = where(race, std::string_view(names).substr(0, end), place);
    say_line(fmt::format(
        "write-write race: {} bytes at {:#x} ({}) by nodes {} and {}, seen by node {} {}",
        race.bytes, race.address, what, std::min(race.writer, race.other),
        std::max(race.writer, race.other), race.writer, when(race.place, place)));
    ++places_in_[variable_of(what)];
}

// "counter+2048 in a.out, a.c:7" is of "counter", a.c:7.
std::string RaceReport::variable_of(std::string_view what) {
    const std::size_t offset = what.find('+'), in = what.find(" in "), line = what.rfind(", ");
    if (in == std::string_view::npos || line == std::string_view::npos || line < in)
        return std::string(what);
    const std::string_view variable = what.substr(0, std::min(offset, in));
    return fmt::format("{} ({})", variable, what.substr(line + 2));
}

// A node also looks at its writes in the background, between two synchronizations.
std::string RaceReport::when(const SyncPlace& place, std::string_view name) {
    if (place.kind != SyncKind::start) return fmt::format("at its {}", name);
    if (place.address == 0) return "at a place that is not known";
    return fmt::format("while it published, after it synchronized at {}", name);
}

std::string RaceReport::where(const net::RaceBody& race, std::string_view known,
                              std::string_view place) {
    if (race.stack_of != 0) {
        const std::uint32_t thread = race.stack_of - 1;
        const auto stacks = omp::stack_sizes(plan_.threads_per_node);
        const std::uint32_t per_node = stacks ? stacks->per_node : plan_.threads_per_node;
        return fmt::format("on the stack of thread {} of node {}{}", thread % per_node,
                           thread / per_node, thread == 0 ? frame_of(race.address, place) : "");
    }
    return known.empty() ? names_.name(race.address) : std::string(known);
}

// While the initial thread is in the region of the racing thread, the frames outside of it are
// where they were. Each look stops the node for some milliseconds.
std::string RaceReport::frame_of(std::uint64_t address, std::string_view place) {
    const std::vector<std::string> region = functions_of_region(place);
    if (region.empty() || looks_ == looks_max) return "";
    // The node that has told is on its way out: a look would meet its end.
    if (setting("HIROBA_RACE") == "abort") return "";
    ++looks_;
    // A thread that is just changing stacks cannot be unwound.
    std::optional<HoldingFrame> frame;
    for (int tries = 0; !frame && tries < 5; ++tries)
        frame = frame_that_holds(process_, address, region);
    if (!frame) return "";
    return ", in the frame of " + names_.code(frame->code).value_or(frame->function);
}

void RaceReport::finish() const {
    if (volume_ == Volume::some && seen_.size() > lines_max)
        say_line(fmt::format("write-write races at {} more places. Set HIROBA_RACE=all to see them",
                             seen_.size() - lines_max));
    if (told_.empty() || !setting("HIROBA_RECORD").empty() || setting("HIROBA_RACE") == "abort")
        return;
    say_line(summary());
}

std::string RaceReport::summary() const {
    constexpr std::size_t named = 5;
    std::vector<std::pair<std::string, std::size_t>> sorted(places_in_.begin(), places_in_.end());
    std::ranges::stable_sort(sorted,
                             [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [name, places] : sorted | std::views::take(named))
        text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", places, name);
    if (sorted.size() > named) text += fmt::format(" and others in {} more", sorted.size() - named);
    return fmt::format(
        "races at {} place{}: {}. What they made of the result is by chance; the lines of both "
        "writes: hiroba run --record FILE",
        seen_.size(), seen_.size() == 1 ? "" : "s", text);
}

}  // namespace hiroba::tools
