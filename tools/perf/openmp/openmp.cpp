// SPDX-License-Identifier: BSD-3-Clause
// Role: see openmp.hpp. The program is one for all sides (program/main.c). Sides take turns, A B A
// B, so that all meet the same other work; of their samples the least says most on a busy machine.
#include "tools/perf/openmp/openmp.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/settings.hpp"
#include "tools/become.hpp"
#include "tools/line.hpp"
#include "tools/perf/openmp/side.hpp"
#include "tools/perf/openmp/table.hpp"
#include "tools/perf/plan.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint32_t nodes_max = 64, threads_max = 64, team_max = 256;  // team: rows.h
constexpr std::uint32_t samples = 15;                                      // of a run: main.c

/// The plan that the words come to.
struct OpenmpPlan {
    std::uint32_t nodes = 2, threads = 1, rounds = 1;
    std::uint64_t milliseconds = 0;   ///< of one row in one run
    std::vector<std::string> others;  ///< paths of other hirobas
};

Result<void> refuse_words_of_others(const PerfOptions& options) {
    const std::pair<const char*, const std::string&> words[] = {
        {"--bytes", options.bytes},       {"--sizes", options.sizes},
        {"--change", options.change},     {"--home", options.home},
        {"--hostfile", options.hostfile}, {"--offload", options.offload}};
    for (const auto& [name, value] : words) {
        if (value.empty()) continue;
        return Error{ErrorKind::usage, fmt::format("{}: openmp has none. Leave it out", name)};
    }
    if (options.hosts.empty() || !options.nodes.empty()) return {};
    return Error{ErrorKind::usage,
                 "--hosts: libgomp gets as many threads as the nodes have. Add --nodes"};
}

Result<OpenmpPlan> make_plan(const PerfOptions& options) {
    if (const auto right = refuse_words_of_others(options); !right) return right.error();
    OpenmpPlan plan;
    const std::string wanted = options.nodes.empty() ? "2" : options.nodes;
    const auto nodes = number_option("--nodes", wanted, 1, nodes_max);
    if (!nodes) return nodes.error();
    const auto threads = number_option("--threads", options.threads, 1, threads_max);
    if (!threads) return threads.error();
    if (*nodes * *threads > team_max) {
        return Error{ErrorKind::usage, fmt::format("--nodes {} --threads {}: openmp takes {} "
                                                   "threads together. Change one of them",
                                                   *nodes, *threads, team_max)};
    }
    const auto rounds = number_option("--repeat", options.repeat, 1, 1000);
    if (!rounds) return rounds.error();
    const auto milliseconds = number_option("--milliseconds", options.milliseconds, 1, 600'000);
    if (!milliseconds) return milliseconds.error();
    plan.nodes = static_cast<std::uint32_t>(*nodes);
    plan.threads = static_cast<std::uint32_t>(*threads);
    plan.rounds = static_cast<std::uint32_t>(*rounds);
    plan.milliseconds = *milliseconds;
    std::istringstream others(options.beside);
    for (std::string path; std::getline(others, path, ',');) {
        if (!is_program(path)) {
            return Error{ErrorKind::usage,
                         fmt::format("--beside {}: openmp takes paths of other hirobas, and stands "
                                     "beside libgomp always. Change --beside",
                                     path)};
        }
        plan.others.push_back(path);
    }
    return plan;
}

/// The program on nodes of `hiroba`.
Side side_on_nodes(const std::string& name, const std::string& hiroba, const OpenmpPlan& plan,
                   const PerfOptions& options, const std::vector<std::string>& program) {
    Side side;
    side.name = name;
    side.threads = plan.nodes * plan.threads;
    side.processes = plan.nodes;
    side.words = {
        hiroba, "run", "-n", std::to_string(plan.nodes), "-t", std::to_string(plan.threads)};
    const std::pair<const char*, const std::string&> passed[] = {
        {"--hosts", options.hosts}, {"--ssh", options.ssh}, {"--ports", options.ports}};
    for (const auto& [word, value] : passed)
        if (!value.empty()) side.words.insert(side.words.end(), {word, value});
    if (options.copy) side.words.emplace_back("--copy");
    side.words.emplace_back("--");
    side.words.insert(side.words.end(), program.begin(), program.end());
    side.settings = {{"OMP_NUM_THREADS", std::to_string(side.threads)}};
    return side;
}

std::vector<Side> make_sides(const OpenmpPlan& plan, const PerfOptions& options) {
    const auto sample_us = static_cast<double>(plan.milliseconds) * 1000 / samples;
    std::vector<std::string> program = {openmp_program(), fmt::format("{:.1f}", sample_us)};
    if (!options.only.empty()) program.push_back(options.only);
    const std::uint32_t team = plan.nodes * plan.threads;
    std::vector<Side> sides;
    sides.push_back(side_on_nodes("hiroba", beside_this_program("hiroba"), plan, options, program));
    sides.push_back({"libgomp", program, {{"OMP_NUM_THREADS", std::to_string(team)}}, team, 1, {}});
    for (const std::string& other : plan.others)
        sides.push_back(side_on_nodes(other, other, plan, options, program));
    return sides;
}

/// Far more than a run takes; it only ends what hangs.
std::uint32_t seconds_max(const OpenmpPlan& plan, std::size_t rows) {
    const std::uint64_t measured = rows * plan.milliseconds / 1000;
    return static_cast<std::uint32_t>(300 + 40 * measured);
}

/// @return the exit status of the first run that failed, of which a line has told
int take_turns(std::vector<Side>& sides, const OpenmpPlan& plan, std::size_t rows) {
    const bool is_watched = ::isatty(STDERR_FILENO) != 0;
    for (std::uint32_t round = 0; round < plan.rounds; ++round) {
        for (Side& side : sides) {
            if (is_watched)
                fmt::print(stderr, "round {} of {}: {}\n", round + 1, plan.rounds, side.name);
            if (const int status = run_side(side, seconds_max(plan, rows)); status != 0)
                return status;
        }
    }
    return 0;
}

/// Whether each side has measured each row of `wanted`, in that order.
bool has_all(const std::vector<Side>& sides, const std::vector<Row>& wanted) {
    for (const Side& side : sides) {
        if (side.rows.size() != wanted.size()) return false;
        for (std::size_t i = 0; i < wanted.size(); ++i)
            if (side.rows[i].name != wanted[i].name || side.rows[i].us.empty()) return false;
    }
    return true;
}

std::string command_of(const OpenmpPlan& plan, const PerfOptions& options) {
    std::string command = fmt::format(
        "hiroba perf openmp -n {} -t {} --provider {} --repeat {} --milliseconds {}", plan.nodes,
        plan.threads, setting("HIROBA_PROVIDER"), plan.rounds, plan.milliseconds);
    const std::pair<const char*, const std::string&> given[] = {
        {"--only", options.only}, {"--beside", options.beside}, {"--hosts", options.hosts}};
    for (const auto& [word, value] : given)
        if (!value.empty()) command += fmt::format(" {} '{}'", word, value);
    return command;
}

int print_names(const std::vector<Row>& rows) {
    for (const Row& row : rows) fmt::print("{:<44} {}\n", row.name, row.group);
    return 0;
}

}  // namespace

int measure_openmp(const PerfOptions& options) {
    if (const auto right = check_settings(); !right) return report(right.error());
    const auto plan = make_plan(options);
    if (!plan) return report(plan.error());
    const auto rows = list_rows(options.only);
    if (!rows) return report(rows.error());
    if (rows->empty()) {
        return report(
            {ErrorKind::usage, fmt::format("--only {}: no row of openmp has that in its name. See "
                                           "hiroba perf openmp --list",
                                           options.only)});
    }
    if (options.list) return print_names(*rows);
    std::ofstream page;
    if (!options.html.empty()) page.open(options.html);  // before an hour of measuring
    if (!page) {
        return report({ErrorKind::environment,
                       fmt::format("--html {}: cannot be written. Change --html", options.html)});
    }
    OpenmpTable table{std::string(setting("HIROBA_PROVIDER")),
                      plan->nodes,
                      plan->threads,
                      plan->rounds,
                      command_of(*plan, options),
                      make_sides(*plan, options)};
    if (const int status = take_turns(table.sides, *plan, rows->size()); status != 0) return status;
    if (!has_all(table.sides, *rows)) {
        say_line("perf openmp: sides have measured different rows; their figures do not count");
        return 70;
    }
    (options.json ? print_openmp_json : print_openmp_table)(table);
    if (!options.html.empty()) page << openmp_page(table) << std::flush;
    return std::fflush(stdout) == 0 && page.good() ? 0 : 1;
}

}  // namespace hiroba::tools::perf_parts
