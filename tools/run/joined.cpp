// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/joined.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/run/checks.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/program.hpp"

namespace hiroba::tools {

namespace {

constexpr const char* colon = ":";

Error usage(std::string text) {
    return {ErrorKind::usage,
            std::move(text) + ". Use hiroba run -n N program ... : -n M program ..."};
}

bool has_colon(const std::vector<std::string>& words) {
    return std::ranges::find(words, colon) != words.end();
}

/// Whether `path` enters main on every node.
bool takes_part(const std::string& path, bool spmd) {
    return spmd || !spmd_library_of(path).empty();
}

/// Takes "-n M" away from the words of a program behind a colon.
Result<void> take_nodes(JoinedProgram& program) {
    auto& words = program.words;
    const bool has_option =
        words.size() >= 2 && (words[0] == "-n" || words[0] == "-np" || words[0] == "--nodes");
    if (!has_option) return usage("behind a colon -n must say how many nodes the program has");
    const auto nodes = count_option(words[0].c_str(), words[1], nodes_max);
    if (!nodes) return nodes.error();
    program.nodes = *nodes;
    words.erase(words.begin(), words.begin() + 2);
    return {};
}

}  // namespace

Result<std::vector<JoinedProgram>> split_programs(const std::vector<std::string>& words) {
    std::vector<JoinedProgram> programs(1);
    for (const std::string& word : words) {
        if (word == colon) {
            programs.push_back({});
        } else {
            programs.back().words.push_back(word);
        }
    }
    for (JoinedProgram& program : programs) {
        if (&program != &programs.front() && !program.words.empty()) {
            if (auto taken = take_nodes(program); !taken) return taken.error();
        }
        if (program.words.empty()) return usage("a colon has no program beside it");
    }
    return programs;
}

Result<std::vector<JoinedProgram>> look_up_joined(const std::vector<std::string>& words,
                                                  const std::string& first, std::uint32_t nodes,
                                                  bool spmd) {
    if (!has_colon(words) || !takes_part(first, spmd)) return std::vector<JoinedProgram>{};
    auto programs = split_programs(words);
    if (!programs) return programs;
    const std::string library = spmd_library_of(first);
    std::uint32_t others = 0;
    for (JoinedProgram& program : *programs) {
        const auto path = find_program(program.words[0]);
        if (!path) return path.error();
        program.path = *path;
        others += program.nodes;
        const std::string its = spmd_library_of(*path);
        if (its == library) continue;
        const auto text = [](const std::string& name) {
            return name.empty() ? "none of ours" : name;
        };
        return usage(
            fmt::format("{} is linked with {}, {} with {}: the programs of a job use one "
                        "library",
                        programs->front().words[0], text(library), program.words[0], text(its)));
    }
    if (others >= nodes)
        return usage(
            fmt::format("{} nodes for the programs behind the first, of {}", others, nodes));
    programs->front().nodes = nodes - others;
    return programs;
}

Result<std::optional<std::uint32_t>> nodes_of_joined(const std::vector<std::string>& words,
                                                     const std::string& first_nodes, bool spmd) {
    using Nodes = std::optional<std::uint32_t>;
    if (words.empty() || !has_colon(words)) return Nodes{};
    // What is not found here may be on the hosts; they look again.
    const auto first = find_program(words[0]);
    if (!takes_part(first ? *first : std::string(), spmd)) return Nodes{};
    const auto programs = split_programs(words);
    if (!programs) return programs.error();
    if (first_nodes.empty()) return usage("-n must say how many nodes the first program has");
    const auto mine = count_option("-n", first_nodes, nodes_max);
    if (!mine) return mine.error();
    std::uint32_t all = *mine;
    for (const JoinedProgram& program : *programs) all += program.nodes;
    if (all > nodes_max) return usage(fmt::format("{} nodes; at most {}", all, nodes_max));
    return Nodes{all};
}

}  // namespace hiroba::tools
