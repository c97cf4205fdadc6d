// SPDX-License-Identifier: BSD-3-Clause
#include "tools/report/race_sites.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hiroba::tools {

namespace {

/// The write fault of a node that is nearest to the racing bytes. A page that is writable already
/// faults no more, so it may be another variable's that lies beside.
struct Site {
    std::uint64_t code = 0;  ///< 0: none was recorded
    bool exact = false;
    std::int64_t at_ns = 0;
};

Site site_of(const Recording& recording, const net::RaceBody& race, std::uint32_t node) {
    const std::uint64_t block = recording.block_bytes;
    const std::uint64_t begin = race.address & low_48;
    Site site;
    for (const Stream& stream : recording.streams) {
        if (stream.node != node) continue;
        for (const Event& event : stream.events) {
            const bool writes =
                (event.first >> 56 & static_cast<std::uint64_t>(FaultWay::write)) != 0;
            const std::uint64_t at = event.first & low_48, code = event.second & low_48;
            if (event.kind != RecordKind::fault || !writes || code == 0) continue;
            if (at / block != begin / block) continue;
            // A wide store faults at its first byte, in front of those that differ.
            const bool exact = at + 8 > begin && at < begin + std::max(race.bytes, 1u);
            if (site.code != 0 &&
                (site.exact > exact || (site.exact == exact && site.at_ns > event.end_ns)))
                continue;
            site = {code, exact, event.end_ns};
        }
    }
    return site;
}

std::string text_of(const Names& names, std::uint32_t node, const Site& site) {
    if (site.code == 0) return fmt::format("node {} at a line that was not recorded", node);
    return fmt::format("node {} {} {}", node,
                       site.exact ? "at" : "on the same page, maybe beside it, at",
                       names.code(site.code));
}

/// The line that allocated the block around `address`; empty: it is no block of the heap, or small.
std::string allocation_of(const Recording& recording, const Names& names, std::uint64_t address) {
    const RecordedBlock* found = nullptr;
    for (const RecordedBlock& each : recording.allocations) {
        if (address - each.address >= each.bytes) continue;
        if (found == nullptr || each.at_ns > found->at_ns) found = &each;
    }
    if (found == nullptr || found->site == 0) return "";
    return fmt::format("; {} bytes allocated at {}", found->bytes, names.code(found->site - 1));
}

}  // namespace

std::vector<std::string> sites_of_races(const Recording& recording, const Names& names,
                                        std::span<const net::RaceBody> races) {
    std::vector<std::string> sentences;
    for (const net::RaceBody& race : races) {
        const std::uint32_t first = std::min(race.writer, race.other);
        const std::uint32_t second = std::max(race.writer, race.other);
        const Site one = site_of(recording, race, first), other = site_of(recording, race, second);
        if (one.code == 0 && other.code == 0) continue;
        sentences.push_back(fmt::format("the race at {:#x} is of writes by {} and {}{}",
                                        race.address, text_of(names, first, one),
                                        text_of(names, second, other),
                                        allocation_of(recording, names, race.address)));
    }
    return sentences;
}

}  // namespace hiroba::tools
