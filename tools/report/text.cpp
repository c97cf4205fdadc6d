// SPDX-License-Identifier: BSD-3-Clause
// Role: the report as a page of text, and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "tools/json.hpp"
#include "tools/report/analysis.hpp"
#include "tools/report/output.hpp"

namespace hiroba::tools {

namespace {

std::string time_text(std::int64_t ns) {
    const auto value = static_cast<double>(ns);
    if (ns >= 10'000'000'000) return fmt::format("{:.1f} s", value / 1e9);
    if (ns >= 1'000'000'000) return fmt::format("{:.2f} s", value / 1e9);
    if (ns >= 1'000'000) return fmt::format("{:.1f} ms", value / 1e6);
    return fmt::format("{:.0f} us", value / 1e3);
}

std::string bytes_text(std::uint64_t bytes) {
    const auto value = static_cast<double>(bytes);
    if (bytes >= std::uint64_t{1} << 30) return fmt::format("{:.1f} GiB", value / (1u << 30));
    if (bytes >= 1u << 20) return fmt::format("{:.1f} MiB", value / (1u << 20));
    return fmt::format("{:.1f} KiB", value / 1024);
}

double part(std::int64_t ns, std::int64_t of) {
    return of > 0 ? 100. * static_cast<double>(ns) / static_cast<double>(of) : 0;
}

const char* sure_text(Advice::Sure sure) {
    switch (sure) {
        case Advice::Sure::low: return "a guess";
        case Advice::Sure::medium: return "likely";
        case Advice::Sure::high: return "sure";
    }
    return "";
}

std::string numbers(const std::set<std::uint32_t>& nodes) {
    std::string text;
    for (const std::uint32_t node : nodes)
        text += fmt::format("{}{}", text.empty() ? "" : " ", node);
    return text.empty() ? "-" : text;
}

std::string shares_text(const Analysis& analysis) {
    std::int64_t all = 0;
    for (const std::int64_t ns : analysis.all) all += ns;
    std::string text = "Where the time went, of all threads\n";
    for (unsigned at = 0; at < shares_count; ++at) {
        if (analysis.all[at] == 0) continue;
        const double percent = part(analysis.all[at], all);
        const auto bar = static_cast<std::size_t>(percent * .4 + .5);
        text += fmt::format("{:7.1f} %  {:<44}{}\n", percent, text_of(static_cast<Share>(at)),
                            std::string(bar, '#'));
    }
    return text;
}

std::string threads_text(const Analysis& analysis) {
    constexpr std::size_t shown_most = 16;
    std::string text =
        "\nBy thread, %      computing   faults releases acquires  atomics    locks  slower  "
        "serial "
        "meetings\n";
    for (std::size_t at = 0; at < analysis.threads.size() && at < shown_most; ++at) {
        const ThreadTime& thread = analysis.threads[at];
        std::int64_t all = 0;
        for (const std::int64_t ns : thread.ns) all += ns;
        text += fmt::format("  node {} thread {:<3}", thread.node, thread.thread);
        for (unsigned share = 0; share < shares_count; ++share)
            text += fmt::format("{:9.1f}", part(thread.ns[share], all));
        text += "\n";
    }
    if (analysis.threads.size() > shown_most)
        text += fmt::format("  and {} threads more\n", analysis.threads.size() - shown_most);
    return text;
}

std::string variables_text(const Analysis& analysis) {
    constexpr std::size_t shown_most = 5;
    if (analysis.dearest.empty()) return "";
    std::string text =
        "\nThe dearest variables     time      faults  published   fetched   written by / read "
        "by\n";
    for (std::size_t at = 0; at < analysis.dearest.size() && at < shown_most; ++at) {
        const VariableRow& row = analysis.variables[analysis.dearest[at]];
        text += fmt::format("  {}\n", row.line.empty() ? row.name : row.name + ", " + row.line);
        text += fmt::format(
            "  {:>28} {:>11} {:>10} {:>9}   {} / {}{}\n", time_text(row.sum_ns()),
            row.read_faults + row.write_faults, row.merged, bytes_text(row.fetched_bytes),
            numbers(row.writers), numbers(row.readers),
            row.falsely_shared > 0 ? fmt::format("; {} blocks falsely shared", row.falsely_shared)
                                   : "");
        const auto code =
            std::ranges::max_element(row.by_code, {}, [](const auto& e) { return e.second; });
        if (code != row.by_code.end() && code->first != 0 && code->second > 0)
            text += fmt::format("  {:>28} in faults of {}\n", time_text(code->second),
                                analysis.names.code(code->first));
    }
    return text;
}

std::string syncs_text(const Analysis& analysis) {
    constexpr std::size_t shown_most = 5;
    if (analysis.syncs.empty()) return "";
    std::string text =
        "\nThe dearest synchronizations, with what follows them, of all threads\n"
        "      times   waiting  itself  releases  acquires    faults\n";
    const auto ns = [](const SyncRow& row, Share share) {
        return row.ns[static_cast<unsigned>(share)];
    };
    for (std::size_t at = 0; at < analysis.syncs.size() && at < shown_most; ++at) {
        const SyncRow& row = analysis.syncs[at];
        text += fmt::format(
            "  {:>9} {:>9} {:>7} {:>9} {:>9} {:>9}   {}\n", row.times,
            time_text(ns(row, Share::slower) + ns(row, Share::serial) + ns(row, Share::locks)),
            time_text(ns(row, Share::meetings)), time_text(ns(row, Share::releases)),
            time_text(ns(row, Share::acquires)), time_text(ns(row, Share::faults)),
            analysis.names.place(row.place));
    }
    return text;
}

/// Where to look, if anything is lost.
std::string no_advice_text(const Analysis& analysis) {
    std::string text =
        "\nAdvice: none. No illness that the guide lists takes more than 2 % of the time.\n";
    std::int64_t all = 0;
    for (const std::int64_t ns : analysis.all) all += ns;
    constexpr double percent_least = 10;
    if (part(all - analysis.all[0], all) < percent_least) return text;
    if (!analysis.dearest.empty()) {
        const VariableRow& row = analysis.variables[analysis.dearest.front()];
        if (part(row.sum_ns(), all) >= percent_least / 2)
            text += fmt::format("Most of what memory costs is for {}: {:.0f} %.\n",
                                row.line.empty() ? row.name : row.name + ", " + row.line,
                                part(row.sum_ns(), all));
    }
    if (!analysis.syncs.empty())
        text += fmt::format("The dearest synchronization, with what follows it: {}, {:.0f} %.\n",
                            analysis.names.place(analysis.syncs.front().place),
                            part(analysis.syncs.front().sum_ns(), all));
    return text;
}

std::string advice_text(const Analysis& analysis) {
    constexpr std::size_t shown_most = 8;
    if (analysis.advice.empty()) return no_advice_text(analysis);
    std::string text = "\nAdvice, with what it would save of the run's time\n";
    for (std::size_t at = 0; at < analysis.advice.size() && at < shown_most; ++at) {
        const Advice& each = analysis.advice[at];
        text +=
            fmt::format("{}. {}, {} ({:.0f} %, {}) - {}\n   {}.\n   {}.\n", at + 1, each.illness,
                        time_text(each.saves_ns), part(each.saves_ns, analysis.wall_ns),
                        sure_text(each.sure), each.line, each.what, each.cure);
    }
    return text;
}

Json shares_json(const Shares& shares) {
    constexpr const char* names[shares_count] = {"computing_ns", "faults_ns",  "releases_ns",
                                                 "acquires_ns",  "atomics_ns", "locks_ns",
                                                 "slower_ns",    "serial_ns",  "meetings_ns"};
    Json json = Json::object();
    for (unsigned at = 0; at < shares_count; ++at) json[names[at]] = shares[at];
    return json;
}

Json variable_json(const Analysis& analysis, const VariableRow& row) {
    constexpr const char* kinds[] = {"named", "heap", "stack", "unknown"};
    Json writers = Json::array(), readers = Json::array(), lines = Json::array();
    for (const std::uint32_t node : row.writers) writers.push_back(node);
    for (const std::uint32_t node : row.readers) readers.push_back(node);
    for (const auto& [code, ns] : row.by_code)
        lines.push_back(Json::object({{"line", analysis.names.code(code)}, {"fault_ns", ns}}));
    return Json::object({{"name", row.name},
                         {"line", row.line},
                         {"kind", kinds[static_cast<unsigned>(row.where)]},
                         {"bytes", row.bytes},
                         {"blocks", static_cast<std::uint64_t>(row.blocks.size())},
                         {"read_faults", row.read_faults},
                         {"write_faults", row.write_faults},
                         {"fault_ns", row.fault_ns},
                         {"release_ns", row.release_ns},
                         {"acquire_ns", row.acquire_ns},
                         {"atomic_ns", row.atomic_ns},
                         {"blocks_published", row.merged},
                         {"bytes_fetched", row.fetched_bytes},
                         {"blocks_falsely_shared", row.falsely_shared},
                         {"writers", std::move(writers)},
                         {"readers", std::move(readers)},
                         {"faults_at", std::move(lines)}});
}

}  // namespace

std::string report_text(const Analysis& analysis) {
    const Recording& recording = *analysis.recording;
    std::string text = fmt::format(
        "{}\n{} node{} of {} thread{}, {}, {} regions\n", recording.job.command,
        recording.job.nodes, recording.job.nodes == 1 ? "" : "s", recording.job.threads,
        recording.job.threads == 1 ? "" : "s", time_text(analysis.wall_ns), analysis.regions);
    for (const std::string& note : recording.notes) text += "Note: " + note + ".\n";
    if (!analysis.busy.empty()) text += "Note: " + analysis.busy + ".\n";
    text += "\n" + shares_text(analysis) + threads_text(analysis) + advice_text(analysis) +
            variables_text(analysis) + syncs_text(analysis);
    return text;
}

std::string report_json(const Analysis& analysis) { return json_of(analysis).dump(2) + "\n"; }

Json json_of(const Analysis& analysis) {
    const Recording& recording = *analysis.recording;
    Json notes = Json::array(), threads = Json::array(), advice = Json::array(),
         variables = Json::array(), syncs = Json::array();
    for (const std::string& note : recording.notes) notes.push_back(note);
    for (const ThreadTime& thread : analysis.threads) {
        Json json = shares_json(thread.ns);
        json["node"] = thread.node;
        json["thread"] = thread.thread;
        json["cpu_ns"] = thread.cpu_ns;
        threads.push_back(std::move(json));
    }
    for (const Advice& each : analysis.advice)
        advice.push_back(Json::object({{"illness", each.illness},
                                       {"line", each.line},
                                       {"what", each.what},
                                       {"cure", each.cure},
                                       {"saves_ns", each.saves_ns},
                                       {"sure", sure_text(each.sure)}}));
    for (const std::uint32_t at : analysis.dearest)
        variables.push_back(variable_json(analysis, analysis.variables[at]));
    for (const SyncRow& row : analysis.syncs) {
        Json json = shares_json(row.ns);
        json["place"] = analysis.names.place(row.place);
        json["times"] = row.times;
        json["faults"] = row.faults;
        json["blocks_published"] = row.merged;
        json["blocks_made_stale"] = row.stale;
        syncs.push_back(std::move(json));
    }
    return Json::object({{"command", recording.job.command},
                         {"nodes", recording.job.nodes},
                         {"threads_per_node", recording.job.threads},
                         {"status", recording.job.status},
                         {"wall_ns", analysis.wall_ns},
                         {"regions", analysis.regions},
                         {"notes", std::move(notes)},
                         {"busy", analysis.busy},
                         {"shares", shares_json(analysis.all)},
                         {"threads", std::move(threads)},
                         {"advice", std::move(advice)},
                         {"variables", std::move(variables)},
                         {"synchronizations", std::move(syncs)}});
}

}  // namespace hiroba::tools
