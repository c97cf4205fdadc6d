// SPDX-License-Identifier: BSD-3-Clause
// Role: has `hiroba run` start this very program as the nodes of a job, and in each of them
// measures. Invariant: only node 0 writes to stdout, and only figures whose answers were checked.
#include "tools/perf/perf.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/settings.hpp"
#include "tools/become.hpp"
#include "tools/json.hpp"
#include "tools/line.hpp"
#include "tools/perf/beside.hpp"
#include "tools/perf/memory_report.hpp"
#include "tools/perf/openmp/openmp.hpp"
#include "tools/perf/plan.hpp"
#include "tools/perf/rig.hpp"
#include "tools/perf/table.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools {

namespace {

using perf_parts::all_tests;
using perf_parts::Measured;
using perf_parts::PerfPlan;
using perf_parts::quantile;
using perf_parts::Rig;

constexpr int exit_wrong_answer = 70;

int list_tests() {
    for (const perf_parts::Test& test : all_tests()) {
        fmt::print("{:<15} {}\n{:<15} floor: {}\n", test.name, test.asks, "", test.floor);
    }
    fmt::print("{:<15} {}\n{:<15} floor: {}\n", perf_parts::openmp_rows, perf_parts::openmp_asks,
               "", perf_parts::openmp_floor);
    return 0;
}

/// The figures of all repetitions together.
struct Figures {
    double median = 0, p10 = 0, p90 = 0, floor = 0, ratio = 0;
    double authenticated_floor = 0;  ///< 0: there is none
    std::uint64_t floor_lost = 0;    ///< datagrams
    std::vector<double> ratios;      ///< of each repetition
};

Figures figures_of(const std::vector<Measured>& repetitions) {
    Figures figures;
    std::vector<double> test, floor, authenticated;
    for (const Measured& each : repetitions) {
        test.insert(test.end(), each.test.begin(), each.test.end());
        floor.insert(floor.end(), each.floor.begin(), each.floor.end());
        authenticated.insert(authenticated.end(), each.authenticated_floor.begin(),
                             each.authenticated_floor.end());
        figures.ratios.push_back(quantile(each.test, 0.5) / quantile(each.floor, 0.5));
    }
    figures.median = quantile(test, 0.5);
    figures.p10 = quantile(test, 0.1);
    figures.p90 = quantile(test, 0.9);
    figures.floor = quantile(floor, 0.5);
    figures.ratio = figures.median / figures.floor;
    if (!authenticated.empty()) figures.authenticated_floor = quantile(authenticated, 0.5);
    return figures;
}

double rounded(double value) { return std::round(value * 100) / 100; }

void print_json(const PerfPlan& plan, const char* provider, const Figures& figures) {
    Json line = Json::object({{"test", plan.test->name},
                              {"provider", provider},
                              {"nodes", plan.nodes},
                              {"threads", plan.threads},
                              {"executors", plan.executors},
                              {"bytes", plan.bytes},
                              {"median_ns", rounded(figures.median)},
                              {"p10_ns", rounded(figures.p10)},
                              {"p90_ns", rounded(figures.p90)},
                              {"floor_ns", rounded(figures.floor)},
                              {"ratio", rounded(figures.ratio)},
                              {"ratio_low", rounded(quantile(figures.ratios, 0.05))},
                              {"ratio_high", rounded(quantile(figures.ratios, 0.95))},
                              {"repeat", plan.repeat},
                              {"offload", std::string(setting("HIROBA_OFFLOAD"))}});
    if (plan.test->measure == perf_parts::measure_dsm_release) {
        line["change"] = perf_parts::name_of(plan.change);
        line["home"] = perf_parts::name_of(plan.home);
    }
    if (figures.floor_lost != 0) line["floor_lost"] = figures.floor_lost;
    if (figures.authenticated_floor != 0) {
        line["floor_authenticated_ns"] = rounded(figures.authenticated_floor);
        line["ratio_authenticated"] = rounded(figures.median / figures.authenticated_floor);
    }
    fmt::print("{}\n", line.dump());
}

void print_table(const PerfPlan& plan, const char* provider, const Figures& figures) {
    fmt::print("{} over {}: {} nodes, {} thread{}, {} bytes, offload={}{}\n", plan.test->name,
               provider, plan.nodes, plan.threads, plan.threads == 1 ? "" : "s", plan.bytes,
               setting("HIROBA_OFFLOAD"),
               plan.executors == 1 ? "" : fmt::format(", {} executors", plan.executors));
    fmt::print("  {:>12} {:>12} {:>12} {:>12} {:>8}\n", "median ns", "p10 ns", "p90 ns", "floor ns",
               "ratio");
    fmt::print("  {:>12.1f} {:>12.1f} {:>12.1f} {:>12.1f} {:>8.2f}\n", figures.median, figures.p10,
               figures.p90, figures.floor, figures.ratio);
    if (plan.test->takes_threads) {
        fmt::print("  {:.2f} million a second, {:.2f} GB/s\n", 1e3 / figures.median,
                   static_cast<double>(plan.bytes) / figures.median);
    }
    if (figures.floor_lost != 0) {
        fmt::print("  the floor lost {} datagrams, each a tenth of a second\n", figures.floor_lost);
    }
    if (figures.authenticated_floor != 0) {
        fmt::print("  ratio to a floor that authenticates as we do, {:.1f} ns: {:.2f}\n",
                   figures.authenticated_floor, figures.median / figures.authenticated_floor);
    }
    if (plan.repeat > 1) {
        fmt::print("  ratio of {} repetitions: {:.2f} to {:.2f}\n", plan.repeat,
                   quantile(figures.ratios, 0.05), quantile(figures.ratios, 0.95));
    }
    fmt::print("  floor: {}\n", plan.test->floor);
}

/// In a node: the plan with the nodes that the launcher has started.
Result<PerfPlan> plan_of_job(PerfPlan plan, const net::JobInfo& job) {
    plan.nodes = job.nodes;
    if (plan.nodes >= plan.test->nodes_min) return plan;
    return Error{
        ErrorKind::usage,
        fmt::format("perf {}: needs {} nodes, and the hosts carry {}. Name "
                    "more hosts, or a:{} for several on one",
                    plan.test->name, plan.test->nodes_min, plan.nodes, plan.test->nodes_min)};
}

int measure(const PerfPlan& wanted, bool json) {
    auto job = net::read_job_info();
    if (!job) return report(job.error());
    const auto planned = plan_of_job(wanted, *job);
    if (!planned) return job->self.value == 0 ? report(planned.error()) : exit_usage;
    const PerfPlan& plan = *planned;
    set_identity(job->self.value, "perf");
    auto rig = Rig::open(*job, plan);
    if (!rig) return report(rig.error());
    if (plan.test->prepare != nullptr) {
        if (auto prepared = plan.test->prepare(**rig); !prepared) return report(prepared.error());
    }
    if (auto connected = (*rig)->connect(); !connected) return report(connected.error());

    std::vector<Measured> repetitions;
    bool verified = true;
    for (std::uint32_t i = 0; i < plan.repeat && verified; ++i) {
        repetitions.push_back(plan.test->measure(**rig));
        verified = (*rig)->all_agree(repetitions.back().verified);
    }
    const std::uint64_t floor_lost = (*rig)->most_lost();
    if (job->self.value == 0 && verified) {
        Figures figures = figures_of(repetitions);
        figures.floor_lost = floor_lost;
        PerfPlan done = plan;
        done.executors = (*rig)->async().executors();  // what there was, not what was asked for
        (json ? print_json : print_table)(done, (*rig)->provider_name(), figures);
        std::fflush(stdout);
    }
    if (job->self.value == 0 && !verified) {
        say_line(
            fmt::format("perf {}: repetition {} brought wrong answers; its figures do not "
                        "count. Run it with another HIROBA_PROVIDER to compare",
                        plan.test->name, repetitions.size()));
    }
    (*rig)->collectives().barrier();
    (*rig)->leave();
    // A thread of what was measured may be at work for another node, with what would be destroyed.
    std::fflush(nullptr);
    std::_Exit(verified ? 0 : exit_wrong_answer);
}

/// Becomes the launcher beside this program, whose nodes are this program again.
/// @return only if that failed: the exit status
int become_launcher(const PerfPlan& plan, const PerfOptions& options,
                    const std::vector<std::string>& words) {
    std::vector<std::string> command = {beside_this_program("hiroba"), "run", "--spmd", "-t",
                                        options.threads};
    // Hosts say themselves how many nodes there are.
    const bool names_hosts = !options.hosts.empty() || !options.hostfile.empty();
    const std::string nodes = names_hosts ? options.nodes : std::to_string(plan.nodes);
    const std::pair<const char*, const std::string&> passed[] = {{"-n", nodes},
                                                                 {"--hosts", options.hosts},
                                                                 {"--hostfile", options.hostfile},
                                                                 {"--ssh", options.ssh},
                                                                 {"--ports", options.ports}};
    for (const auto& [name, value] : passed) {
        if (!value.empty()) command.insert(command.end(), {name, value});
    }
    if (options.copy) command.emplace_back("--copy");
    command.insert(command.end(), {"--", beside_this_program("hiroba-perf")});
    command.insert(command.end(), words.begin() + 1, words.end());
    return become(command);
}

/// Several measurements, or those of peers beside one: each is a job of its own.
int measure_rows(const PerfOptions& options) {
    if (const auto right = check_settings(); !right) return report(right.error());
    const bool names_hosts = !options.hosts.empty() || !options.hostfile.empty();
    if (!options.beside.empty() && names_hosts) {
        return report({ErrorKind::usage,
                       "--beside: peers are measured on this host. Leave --hosts out, "
                       "or --beside"});
    }
    const auto rows = perf_parts::rows_of(options);
    if (!rows) return report(rows.error());
    return options.beside.empty() ? perf_parts::measure_table(*rows, options.json)
                                  : perf_parts::measure_beside(*rows);
}

}  // namespace

int perf(const PerfOptions& options, const std::vector<std::string>& words) {
    const bool is_openmp = options.test == perf_parts::openmp_rows;
    if (options.list && !is_openmp) return list_tests();
    // What `hiroba info --memory` starts as ranks.
    if (options.test == memory_report && ::getenv("HIROBA_JOB_RANK") != nullptr) {
        return perf_parts::report_memory(options.json);
    }
    if (!options.provider.empty()) ::setenv("HIROBA_PROVIDER", options.provider.c_str(), 1);
    if (is_openmp) return perf_parts::measure_openmp(options);
    if (!options.only.empty() || !options.html.empty())
        return report({ErrorKind::usage, "--only, --html: openmp alone has them. Leave them out"});
    if (!options.offload.empty()) ::setenv("HIROBA_OFFLOAD", options.offload.c_str(), 1);
    if (perf_parts::is_table(options) || !options.beside.empty()) return measure_rows(options);
    const auto plan = perf_parts::make_perf_plan(options);
    if (!plan) return report(plan.error());
    if (::getenv("HIROBA_JOB_RANK") != nullptr) return measure(*plan, options.json);
    return become_launcher(*plan, options, words);
}

}  // namespace hiroba::tools
