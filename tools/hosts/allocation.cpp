// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/allocation.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

namespace hiroba::tools {

namespace {

Error wrong(std::string text) { return {ErrorKind::usage, std::move(text)}; }

std::optional<std::uint32_t> number_in(std::string_view digits) {
    std::uint32_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size())
        return std::nullopt;
    return value;
}

/// Hosts in the order first named, each with its number of nodes.
class HostCounts {
public:
    void add(const std::string& host, std::uint32_t nodes) {
        const auto known =
            std::ranges::find(hosts_, host, &std::pair<std::string, std::uint32_t>::first);
        if (known == hosts_.end())
            hosts_.emplace_back(host, nodes);
        else
            known->second += nodes;
    }
    bool empty() const { return hosts_.empty(); }
    std::string words() const {
        std::string text;
        for (const auto& [host, nodes] : hosts_) {
            // A numeric IPv6 address has colons of its own.
            const bool numeric = host.find(':') != host.npos;
            text += fmt::format("{}{}:{}", text.empty() ? "" : ",",
                                numeric ? "[" + host + "]" : host, nodes);
        }
        return text;
    }

private:
    std::vector<std::pair<std::string, std::uint32_t>> hosts_;
};

/// One part of a host list: text, then perhaps [ranges].
Result<void> expand_part(const std::string& part, std::vector<std::string>& names) {
    const auto open = part.find('[');
    const auto close = part.find(']');
    if (open == part.npos && close == part.npos && !part.empty())
        return names.push_back(part), Result<void>{};
    const Error malformed = wrong(fmt::format("\"{}\" is no list of hosts", part));
    if (open == part.npos || close == part.npos || close < open) return malformed;
    const std::string head = part.substr(0, open), tail = part.substr(close + 1);
    std::istringstream ranges(part.substr(open + 1, close - open - 1));
    for (std::string range; std::getline(ranges, range, ',');) {
        const auto dash = range.find('-');
        const std::string first = range.substr(0, dash);
        const std::string last = dash == range.npos ? first : range.substr(dash + 1);
        const auto from = number_in(first), to = number_in(last);
        if (!from || !to || *to < *from || *to - *from > 100'000) return malformed;
        for (std::uint32_t number = *from; number <= *to; ++number)
            names.push_back(fmt::format("{}{:0{}}{}", head, number, first.size(), tail));
    }
    return {};
}

/// "2(x3),1" -> {2, 2, 2, 1}
Result<std::vector<std::uint32_t>> expand_counts(const std::string& text) {
    std::vector<std::uint32_t> counts;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        const auto open = part.find("(x");
        const auto count = number_in(part.substr(0, open));
        const auto times = open == part.npos
                               ? std::optional<std::uint32_t>(1)
                               : number_in(part.substr(open + 2, part.size() - open - 3));
        if (!count || !times || *times > 100'000)
            return wrong(fmt::format("SLURM_TASKS_PER_NODE={}: no list of counts", text));
        counts.insert(counts.end(), *times, *count);
    }
    return counts;
}

Result<std::optional<Allocation>> slurm(const char* nodes, const char* tasks) {
    const auto names = expand_host_list(nodes);
    if (!names) return wrong("SLURM_JOB_NODELIST: " + names.error().text);
    std::vector<std::uint32_t> counts(names->size(), 1);
    if (tasks != nullptr) {
        auto given = expand_counts(tasks);
        if (!given) return given.error();
        if (given->size() == names->size()) counts = std::move(*given);
    }
    HostCounts hosts;
    for (std::size_t i = 0; i < names->size(); ++i) hosts.add((*names)[i], counts[i]);
    // A step of its own for each agent, beside the step that this process may be.
    return std::optional(Allocation{hosts.words(),
                                    "srun --overlap --nodes=1 --ntasks=1 --export=ALL -w",
                                    "SLURM_JOB_NODELIST"});
}

}  // namespace

Result<std::vector<std::string>> expand_host_list(const std::string& text) {
    std::vector<std::string> names;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t at = 0; at <= text.size(); ++at) {
        if (at < text.size() && text[at] == '[') ++depth;
        if (at < text.size() && text[at] == ']') --depth;
        if (at < text.size() && (text[at] != ',' || depth > 0)) continue;
        if (const auto expanded = expand_part(text.substr(begin, at - begin), names); !expanded)
            return expanded.error();
        begin = at + 1;
    }
    return names;
}

Result<std::string> read_hostfile(const std::string& path) {
    std::ifstream file(path);
    if (!file)
        return wrong(fmt::format("--hostfile {}: {}. Check the path", path, ::strerror(errno)));
    HostCounts hosts;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        line.resize(std::min(line.find('#'), line.size()));
        std::istringstream words(line);
        std::string host, word;
        if (!(words >> host)) continue;
        std::optional<std::uint32_t> nodes = 1;
        const auto colon = host.find(':');
        if (colon != host.npos && colon == host.rfind(':')) {
            nodes = number_in(std::string_view(host).substr(colon + 1));
            host.resize(colon);
        }
        while (words >> word) {
            if (word.starts_with("slots=")) nodes = number_in(std::string_view(word).substr(6));
            if (word.starts_with("max_slots=") || word.starts_with("slots=")) continue;
            return wrong(
                fmt::format("--hostfile {}, line {}: \"{}\" is not understood. Write "
                            "HOST, HOST:2 or HOST slots=2",
                            path, number, word));
        }
        if (!nodes || *nodes == 0)
            return wrong(
                fmt::format("--hostfile {}, line {}: the number of nodes of {} is no "
                            "positive number",
                            path, number, host));
        hosts.add(host, *nodes);
    }
    if (hosts.empty()) return wrong(fmt::format("--hostfile {} names no host", path));
    return hosts.words();
}

Result<std::optional<Allocation>> find_allocation(const char* (*get)(const char*)) {
    if (const char* const nodes = get("SLURM_JOB_NODELIST"))
        return slurm(nodes, get("SLURM_TASKS_PER_NODE"));
    if (const char* const path = get("PBS_NODEFILE")) {
        const auto hosts = read_hostfile(path);
        if (!hosts) return wrong("PBS_NODEFILE: " + hosts.error().text);
        return std::optional(Allocation{*hosts, "", "PBS_NODEFILE"});
    }
    return std::optional<Allocation>{};
}

}  // namespace hiroba::tools
