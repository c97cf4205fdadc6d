// SPDX-License-Identifier: BSD-3-Clause
#include "tools/exec/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace hiroba::tools {

namespace {

constexpr std::string_view magic = "hiroba-exec";

/// A positive number, or nothing.
std::optional<std::uint64_t> number_in(const char* text) {
    if (text == nullptr) return std::nullopt;
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text, text + std::strlen(text), value);
    if (parsed.ec != std::errc()) return std::nullopt;
    return value;
}

}  // namespace

// The build comes first: all builds can read each other's cards as far as that.
std::vector<std::byte> write_card(const ExecCard& card) {
    std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{} {} {}\n", magic, card.build, card.host,
                                   card.host_name, card.cpus, card.key, card.key_high, card.port);
    for (const std::string& address : card.callers) text += address + "\n";
    const Bytes bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

Result<ExecCard> read_card(Bytes bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    if (lines.size() < 2 || lines[0] != magic)
        return Error{ErrorKind::environment,
                     "a process of the job is no hiroba exec. Start all with one command"};
    ExecCard card;
    card.build = lines[1];
    if (lines.size() < 6) return card;  // Of another build, which place() refuses.
    card.host = number_in(lines[2].c_str()).value_or(0);
    card.host_name = lines[3];
    card.cpus = lines[4];
    const char* at = lines[5].data();
    const char* const end = at + lines[5].size();
    const auto take = [&](auto& number) {
        at = std::from_chars(at, end, number).ptr;
        if (at != end) ++at;
    };
    take(card.key);
    take(card.key_high);
    take(card.port);
    card.callers.assign(lines.begin() + 6, lines.end());
    return card;
}

Result<Placement> place(const std::vector<ExecCard>& cards) {
    Placement placement;
    std::vector<std::uint64_t> ids;
    for (std::uint32_t process = 0; process < cards.size(); ++process) {
        const ExecCard& card = cards[process];
        if (card.build != cards[0].build)
            return Error{ErrorKind::environment,
                         fmt::format("process {} on {} is hiroba build {}, process 0 on {} is {}. "
                                     "Install the same hiroba on every host",
                                     process, card.host_name, card.build, cards[0].host_name,
                                     cards[0].build)};
        const auto known = std::ranges::find(ids, card.host);
        const auto host = static_cast<std::uint32_t>(known - ids.begin());
        if (known == ids.end()) {
            ids.push_back(card.host);
            placement.hosts.push_back({card.host_name, 0, 0, {}});
            placement.leader_of.push_back(process);
        }
        placement.host_of.push_back(host);
        placement.hosts[host].nodes += 1;
        placement.hosts[host].node_cpus.push_back(card.cpus);
    }
    std::uint32_t first = 0;
    for (HostPlan& host : placement.hosts) first = (host.first_rank = first) + host.nodes;
    return placement;
}

}  // namespace hiroba::tools
