// SPDX-License-Identifier: BSD-3-Clause
// Role: the counters by synchronization: as a table for people, with all the rest as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/json.hpp"
#include "tools/run/stats_table.hpp"

namespace hiroba::tools {

namespace {

using Counters = std::map<std::string, std::uint64_t>;

struct Column {
    const char* title;
    std::vector<std::string> sum_of;  ///< counters that are added up
};

const std::vector<Column>& columns() {
    static const std::vector<Column> all = {
        {"releases", {"releases"}},
        {"release us", {"release_us"}},
        {"acquires", {"acquires"}},
        {"acquire us", {"acquire_us"}},
        {"faults", {"read_faults", "write_faults"}},
        {"fault us", {"fault_us"}},
        {"by notice", {"fetches_by_notice"}},
        {"by home", {"fetches_by_home"}},
        {"ahead", {"fetched_ahead"}},
        {"renewed", {"renewals"}},
        {"KiB", {"bytes_fetched"}},
        {"merged", {"blocks_merged"}},
        {"notices", {"notices_made"}},
        {"dropped", {"notices_dropped"}},
        {"stayed", {"regions_stayed"}},
    };
    return all;
}

std::uint64_t count_of(const Counters& counters, const std::string& name) {
    const auto found = counters.find(name);
    return found == counters.end() ? 0 : found->second;
}

std::uint64_t value_of(const Counters& counters, const Column& column) {
    std::uint64_t sum = 0;
    for (const std::string& name : column.sum_of) sum += count_of(counters, name);
    return column.sum_of[0] == "bytes_fetched" ? sum / 1024 : sum;
}

std::uint64_t time_of(const Counters& counters) {
    return count_of(counters, "fault_us") + count_of(counters, "release_us") +
           count_of(counters, "acquire_us");
}

std::string name_of(const ReportedPlace& reported, const std::vector<LoadedFile>& files) {
    return reported.name.empty() ? name_place(files, reported.place) : reported.name;
}

Json as_json(const std::vector<ReportedCount>& counts) {
    Json object = Json::object();
    for (const ReportedCount& count : counts) object[count.name] = count.value;
    return object;
}

}  // namespace

std::string places_table(const ControlServer& control, std::uint32_t nodes,
                         const std::vector<LoadedFile>& files) {
    struct Row {
        std::string name;
        Counters counters;
    };
    std::map<std::pair<std::uintptr_t, SyncKind>, Row> places;
    for (std::uint32_t rank = 0; rank < nodes; ++rank) {
        for (const ReportedPlace& reported : control.places(rank)) {
            Row& row = places[{reported.place.address, reported.place.kind}];
            if (row.name.empty()) row.name = name_of(reported, files);
            for (const ReportedCount& count : reported.counts)
                row.counters[count.name] += count.value;
        }
    }
    if (places.empty()) return "";
    std::vector<Row> rows;
    rows.reserve(places.size());
    for (auto& [key, row] : places) rows.push_back(std::move(row));
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
        return time_of(a.counters) > time_of(b.counters);
    });

    std::string table;
    for (const Column& column : columns()) table += fmt::format("{:>11}", column.title);
    table += "  synchronization\n";
    for (const auto& [name, counters] : rows) {
        for (const Column& column : columns())
            table += fmt::format("{:>11}", value_of(counters, column));
        table += "  " + name + "\n";
    }
    return table;
}

std::string stats_json(const ControlServer& control, std::uint32_t nodes,
                       const std::vector<LoadedFile>& files) {
    Json ranks = Json::array();
    for (std::uint32_t rank = 0; rank < nodes; ++rank) {
        Json places = Json::array();
        for (const ReportedPlace& reported : control.places(rank)) {
            places.push_back(Json::object({{"place", name_of(reported, files)},
                                           {"address", reported.place.address},
                                           {"counters", as_json(reported.counts)}}));
        }
        ranks.push_back(Json::object({{"rank", rank},
                                      {"parallel_regions", control.regions(rank).value_or(0)},
                                      {"counters", as_json(control.counts(rank))},
                                      {"places", places}}));
    }
    const Json all = Json::object({{"nodes", std::move(ranks)}});
    return all.dump(2) + "\n";
}

}  // namespace hiroba::tools
