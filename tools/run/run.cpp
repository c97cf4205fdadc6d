// SPDX-License-Identifier: BSD-3-Clause
// Role: the life of a job in order: check everything, start the nodes, serve them, sum up.
#include "tools/run/run.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "net/bootstrap/port_range.hpp"
#include "net/provider/secrecy.hpp"
#include "tools/hosts/allocation.hpp"
#include "tools/hosts/run_on_hosts.hpp"
#include "tools/line.hpp"
#include "tools/machine.hpp"
#include "tools/report/job_recording.hpp"
#include "tools/report/progress.hpp"
#include "tools/run/bind.hpp"
#include "tools/run/checks.hpp"
#include "tools/run/control_server.hpp"
#include "tools/run/crash_report.hpp"
#include "tools/run/environment.hpp"
#include "tools/run/local_nodes.hpp"
#include "tools/run/participation.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/program.hpp"
#include "tools/run/reports.hpp"
#include "tools/run/signals.hpp"
#include "tools/run/stillness.hpp"
#include "tools/run/supervisor.hpp"

namespace hiroba::tools {

namespace {

Result<RunPlan> make_plan(const RunOptions& options, const Machine& machine) {
    if (options.command.empty())
        return Error{ErrorKind::usage,
                     "no program was named. Use hiroba run -n N program [arguments]"};
    RunPlan plan;
    plan.spmd = options.spmd;
    const auto grace = loss_grace_ns();
    if (!grace) return grace.error();
    plan.loss_grace_ns = *grace;
    const auto still = still_limit_ns();
    if (!still) return still.error();
    plan.still_ns = *still;
    plan.command = options.command;
    const auto nodes = count_option("-n", options.nodes, nodes_max);
    if (!nodes) return nodes.error();
    plan.nodes = *nodes;
    if (!options.progress.empty()) {
        const auto interval = progress_interval_ns(options.progress);
        if (!interval) return interval.error();
        plan.progress_ns = *interval;
        record_for_progress();
    }
    plan.threads_per_node = std::clamp(machine.cores() / plan.nodes, 1u, threads_max);
    if (!options.threads.empty()) {
        const auto threads = count_option("--threads", options.threads, threads_max);
        if (!threads) return threads.error();
        plan.threads_per_node = *threads;
    }
    if (auto bound = bind_nodes(plan, options.bind_to); !bound) return bound.error();
    if (auto found = look_up_program(plan); !found) return found.error();
    return plan;
}

/// What the programs say: that all nodes enter main, and how many they are if programs are several.
Result<RunOptions> with_programs(const RunOptions& options) {
    const auto nodes = nodes_of_joined(options.command, options.nodes, options.spmd);
    if (!nodes) return nodes.error();
    RunOptions joined = options;
    const auto first = options.command.empty() ? std::string() : options.command[0];
    if (const auto found = find_program(first); found && is_acp_program(*found)) joined.spmd = true;
    if (!*nodes) return joined;
    if (options.copy)
        return Error{ErrorKind::usage,
                     "--copy sends one program to the hosts. Put several there yourself"};
    joined.nodes = std::to_string(**nodes);
    return joined;
}

/// The hosts of the job: those named, else those of a batch system's allocation with more than one.
Result<RunOptions> with_hosts(const RunOptions& options) {
    RunOptions spread = options;
    if (!options.hostfile.empty()) {
        if (!options.hosts.empty())
            return Error{ErrorKind::usage, "--hosts and --hostfile both name hosts. Leave one out"};
        const auto hosts = read_hostfile(options.hostfile);
        if (!hosts) return hosts.error();
        spread.hosts = *hosts;
    }
    if (!spread.hosts.empty()) return spread;
    const auto given =
        find_allocation([](const char* name) -> const char* { return ::getenv(name); });
    if (!given) return given.error();
    if (!*given) return spread;
    if ((*given)->hosts.find(',') == std::string::npos) {
        const std::string& host = (*given)->hosts;
        if (spread.nodes.empty()) spread.nodes = host.substr(host.rfind(':') + 1);
        return spread;
    }
    spread.hosts = (*given)->hosts;
    if (spread.ssh.empty() && ::getenv("HIROBA_SSH") == nullptr) spread.ssh = (*given)->command;
    if (options.verbose) say_line("hosts of " + (*given)->source + ": " + spread.hosts);
    return spread;
}

/// The nodes of a job on this host, from first to last.
int run_here(const RunPlan& plan, SignalWatch& signals) {
    const auto key = draw_job_key();
    if (!key) return report(key.error());
    auto recording = JobRecording::begin(plan.command, plan.nodes, plan.threads_per_node);
    if (!recording) return report(recording.error());
    auto started = start_nodes(plan, *key, signals);
    if (!started) return report(started.error());
    std::vector<int> sockets;
    for (const NodeProcess& node : *started) sockets.push_back(node.socket);
    LocalNodes nodes(std::move(*started));
    RaceReport races(race_volume(), nodes.first_process(), plan);
    ControlServer control(sockets, race_sink(races), attach_sink(races));
    CrashReport crashes;
    control.tell_crashes_to(
        [&](std::uint32_t rank, const net::CrashBody& crash, const std::string&) {
            crashes.add(describe_crash(rank, nodes.process_of(rank), crash));
        });
    Supervisor supervisor(plan, nodes, control, signals);
    supervisor.tell_progress_by([] {
        if (const std::string text = progress_now(); !text.empty()) say_line(text);
    });
    const int status = supervisor.run();
    sum_up(plan, control, races);
    recording->finish(status, plan.threads_per_node, races.told());
    if (plan.progress_ns != 0) remove_progress_file();
    if (status == 0) tell_idle_nodes(plan, control);
    return status;
}

/// What runs where, as over several hosts.
void say_places(const RunPlan& plan) {
    std::string cores;
    for (std::size_t rank = 0; rank < plan.node_cpus.size(); ++rank)
        cores += fmt::format("{} rank {} on {}", rank == 0 ? ": processors of" : ",", rank,
                             plan.node_cpus[rank]);
    say_line(fmt::format("this host: rank{}, {} thread{} a node, provider {}{}",
                         plan.nodes == 1 ? " 0" : fmt::format("s 0 to {}", plan.nodes - 1),
                         plan.threads_per_node, plan.threads_per_node == 1 ? "" : "s",
                         setting("HIROBA_PROVIDER"), cores));
}

bool is_unlimited(__rlimit_resource resource) {
    rlimit limit{};
    return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

/// More nodes of one host than can map each other's memory get smaller heaps and stacks, unless the
/// user has said how large they are to be. Few nodes have room for what programs reserve.
Result<void> fit_sizes(const RunPlan& plan) {
    const std::string_view provider = setting("HIROBA_PROVIDER");
    const bool maps_peers = provider == "auto" || provider.starts_with("shm");
    const bool has_room = plan.hosts == 1 && plan.nodes <= nodes_of_large_heaps &&
                          is_unlimited(RLIMIT_AS) && is_unlimited(RLIMIT_FSIZE);
    if (!maps_peers && !has_room) return {};
    auto sizes = space_sizes(plan.threads_per_node);
    if (!sizes) return sizes.error();
    const FreeSizes free{::getenv("HIROBA_HEAP") == nullptr, ::getenv("HIROBA_STACK") == nullptr};
    const SpaceSizes before = *sizes;
    if (has_room && free.heap) sizes->heap_bytes = std::max(before.heap_bytes, large_heap_bytes);
    const SpaceSizes fitting = sizes_that_fit(plan, *sizes, free);
    const auto set = [](const char* name, std::uint64_t now, std::uint64_t before) {
        if (now != before) ::setenv(name, std::to_string(now).c_str(), 1);
    };
    ::unsetenv(chose_heap);
    if (fitting.heap_bytes != before.heap_bytes) ::setenv(chose_heap, "1", 1);
    set("HIROBA_HEAP", fitting.heap_bytes, before.heap_bytes);
    set("HIROBA_STACK", fitting.stack_bytes, before.stack_bytes);
    return {};
}

}  // namespace

Result<void> prepare_command(const RunOptions& options) {
    fill_standard_descriptors();
    if (!options.starter_memory.empty())
        ::setenv("HIROBA_ACP_STARTER", options.starter_memory.c_str(), 1);
    if (!options.provider.empty()) ::setenv("HIROBA_PROVIDER", options.provider.c_str(), 1);
    if (!options.record.empty()) ::setenv("HIROBA_RECORD", options.record.c_str(), 1);
    if (options.core) ::setenv("HIROBA_CORE", "memory", 1);
    JobRecording::make_name_absolute();
    if (!options.ports.empty()) ::setenv("HIROBA_PORTS", options.ports.c_str(), 1);
    if (auto valid = check_settings(); !valid) return valid;
    if (auto secret = net::check_secrecy(setting("HIROBA_PROVIDER")); !secret) return secret;
    if (const auto ports = net::port_range(setting("HIROBA_PORTS")); !ports) return ports.error();
    return set_up_diagnostics();
}

int run(const RunOptions& options) {
    if (const auto ready = prepare_command(options); !ready) return report(ready.error());
    const auto joined = with_programs(options);
    if (!joined) return report(joined.error());
    const auto spread = with_hosts(*joined);
    if (!spread) return report(spread.error());
    if (!spread->hosts.empty()) {
        if (!spread->progress.empty())
            return report(Error{ErrorKind::usage,
                                "--progress is for jobs of one host. Record this one, and look by "
                                "hiroba top"});
        return run_on_hosts(*spread);
    }
    const Machine machine = look_at_machine();
    const auto plan = make_plan(*spread, machine);
    if (!plan) return report(plan.error());
    if (const auto lowered = fit_sizes(*plan); !lowered) return report(lowered.error());
    if (const auto fit = check_machine(*plan, machine); !fit) return report(fit.error());
    warn_unknown_settings();

    tell_refused_constructs(*plan);
    if (options.verbose) say_places(*plan);

    auto signals = SignalWatch::open();
    if (!signals) return report(signals.error());
    return run_here(*plan, *signals);
}

}  // namespace hiroba::tools
