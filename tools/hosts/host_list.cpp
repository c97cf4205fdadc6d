// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include "tools/run/plan.hpp"

namespace hiroba::tools {

namespace {

Error wrong(std::string text) { return {ErrorKind::usage, "--hosts " + std::move(text)}; }

/// A name goes onto the command line of the user's ssh: it must not look like an option, nor mean
/// something to a shell.
bool is_name(std::string_view name) {
    constexpr std::string_view allowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:@%";
    return !name.empty() && name[0] != '-' && name.find_first_not_of(allowed) == name.npos;
}

Result<HostPlan> parse_host(const std::string& word) {
    HostPlan host;
    std::string count = "1";
    const bool bracketed = word.starts_with('[');
    const auto name_end = bracketed ? word.find(']') : word.rfind(':');
    const auto colon = bracketed ? (name_end == word.npos ? word.npos : name_end + 1) : name_end;
    host.name = bracketed ? word.substr(1, name_end == word.npos ? word.npos : name_end - 1)
                          : word.substr(0, name_end);
    if (colon < word.size()) {
        if (word[colon] != ':')
            return wrong(fmt::format("{}: behind ] comes : and a number of nodes", word));
        count = word.substr(colon + 1);
    }
    if (!is_name(host.name) || (!bracketed && host.name.find(':') != host.name.npos))
        return wrong(fmt::format("\"{}\" is no name of a host. Write --hosts a,b:2,[::1]:2", word));
    const char* const end = count.data() + count.size();
    const auto parsed = std::from_chars(count.data(), end, host.nodes);
    if (parsed.ec != std::errc() || parsed.ptr != end || host.nodes < 1 || host.nodes > nodes_max)
        return wrong(fmt::format("{}: {} nodes: wanted a whole number from 1 to {}", word,
                                 count.empty() ? "no number of" : count, nodes_max));
    return host;
}

}  // namespace

Result<std::vector<HostPlan>> parse_hosts(const std::string& words, std::uint32_t nodes) {
    std::vector<HostPlan> hosts;
    std::uint32_t places = 0;
    // The stream would not see that nothing stands behind the last comma.
    std::istringstream stream(words + ",");
    for (std::string word; std::getline(stream, word, ',');) {
        const auto host = parse_host(word);
        if (!host) return host.error();
        if (std::ranges::any_of(hosts, [&](const auto& other) { return other.name == host->name; }))
            return wrong(
                fmt::format("names {} twice. Write it once, with the number of its "
                            "nodes: {}:2",
                            host->name, host->name));
        hosts.push_back(*host);
        hosts.back().first_rank = places;
        places += host->nodes;
    }
    if (nodes == 0) nodes = places;
    if (nodes > places)
        return wrong(
            fmt::format("{} has places for {} nodes, -n asks for {}. Lower -n, or give "
                        "hosts more places (a:2)",
                        words, places, nodes));
    if (nodes > nodes_max)
        return wrong(
            fmt::format("{} makes {} nodes; at most {}. Lower -n", words, nodes, nodes_max));
    std::erase_if(hosts, [&](const HostPlan& host) { return host.first_rank >= nodes; });
    hosts.back().nodes = nodes - hosts.back().first_rank;
    return hosts;
}

}  // namespace hiroba::tools
