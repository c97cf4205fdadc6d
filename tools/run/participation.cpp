// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/participation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "tools/line.hpp"
#include "tools/run/program.hpp"

namespace hiroba::tools {

namespace {

/// "node 3", "nodes 1 to 3", "nodes 1, 3".
std::string names_of(const std::vector<std::uint32_t>& ranks) {
    if (ranks.size() == 1) return fmt::format("node {}", ranks[0]);
    const bool in_a_row = ranks.back() - ranks.front() + 1 == ranks.size();
    if (in_a_row) return fmt::format("nodes {} to {}", ranks.front(), ranks.back());
    return fmt::format("nodes {}", fmt::join(ranks, ", "));
}

std::vector<std::uint32_t> idle_nodes(const RunPlan& plan, const ControlServer& control) {
    std::vector<std::uint32_t> idle;
    for (std::uint32_t rank = 0; rank < plan.nodes; ++rank)
        if (control.regions(rank) == 0u) idle.push_back(rank);
    return idle;
}

void tell_outside(const RunPlan& plan, const StartedOutside& started) {
    say_line(
        fmt::format("{} ran no parallel region, and {}, which it {}, ran outside of hiroba, as "
                    "without it. Name the program itself: hiroba run -n {} program",
                    plan.command[0], started.text, started.replaces ? "became by exec" : "started",
                    plan.nodes));
}

/// The program's file, where this host has it: the nodes may all be on others.
std::string file_of(const RunPlan& plan) {
    if (!plan.program.empty()) return plan.program;
    const auto found = find_program(plan.command[0]);
    return found ? *found : std::string();
}

/// Why node 0 itself had no team of several threads.
std::string why_no_team(const RunPlan& plan) {
    const char* const threads = ::getenv("OMP_NUM_THREADS");
    const std::string file = file_of(plan);
    if (!file.empty() && !calls_openmp(file))
        return fmt::format("{} itself calls no OpenMP; gcc -fopenmp builds it in", plan.command[0]);
    if (threads != nullptr && ::strtoul(threads, nullptr, 10) == 1)
        return fmt::format("OMP_NUM_THREADS={} makes teams of one thread. Unset it", threads);
    return fmt::format("{} had no region of several threads", plan.command[0]);
}

std::string why_small_teams() {
    const char* const threads = ::getenv("OMP_NUM_THREADS");
    if (threads == nullptr) return "every team had fewer threads than there are nodes";
    return fmt::format("OMP_NUM_THREADS={} leaves no thread for them. Unset it, or use fewer nodes",
                       threads);
}

}  // namespace

void tell_refused_constructs(const RunPlan& plan) {
    if (plan.spmd) return;
    const auto names = refused_entry_points(plan.program, plan.library);
    if (names.empty()) return;
    say_line(
        fmt::format("{} asks for {}: hiroba cannot carry that out, and ends the program where "
                    "it gets there (see the limits in README.md)",
                    plan.command[0], fmt::join(names, ", ")));
}

void tell_idle_nodes(const RunPlan& plan, const ControlServer& control) {
    if (plan.nodes == 1) return;
    if (plan.spmd) {
        const std::string file = file_of(plan);
        if (spmd_library_of(file).empty() && calls_openmp(file))
            say_line(
                fmt::format("--spmd ran {} copies of {}, each on its own: an OpenMP program "
                            "runs over all nodes without --spmd",
                            plan.nodes, plan.command[0]));
        return;
    }
    const StartedOutside& started = control.started(0);
    if (!control.leaving(0)) {
        if (started.replaces && !started.text.empty()) tell_outside(plan, started);
        return;
    }
    const std::vector<std::uint32_t> idle = idle_nodes(plan, control);
    if (idle.empty()) return;
    if (idle[0] != 0)
        return say_line(
            fmt::format("{} ran no parallel region: {}", names_of(idle), why_small_teams()));
    if (!started.text.empty()) return tell_outside(plan, started);
    std::vector<std::uint32_t> others;
    for (std::uint32_t rank = 1; rank < plan.nodes; ++rank) others.push_back(rank);
    say_line(fmt::format("{} ran no parallel region: {}", names_of(others), why_no_team(plan)));
}

}  // namespace hiroba::tools
