// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/run_on_hosts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"
#include "net/bootstrap/device.hpp"
#include "tools/hosts/copies.hpp"
#include "tools/hosts/host_list.hpp"
#include "tools/hosts/remote_nodes.hpp"
#include "tools/line.hpp"
#include "tools/report/job_recording.hpp"
#include "tools/run/checks.hpp"
#include "tools/run/crash_report.hpp"
#include "tools/run/nodes.hpp"
#include "tools/run/participation.hpp"
#include "tools/run/reports.hpp"
#include "tools/run/stillness.hpp"
#include "tools/run/supervisor.hpp"

namespace hiroba::tools {

namespace {

/// An empty variable counts as unset; only what the user asked for can be wrong.
Result<void> check_provider(std::uint32_t hosts) {
    const char* const provider = ::getenv("HIROBA_PROVIDER");
    if (hosts > 1 && provider && std::string_view(provider) == "shm")
        return Error{ErrorKind::usage,
                     "HIROBA_PROVIDER=shm reaches no other host. Unset it, or set auto or udp"};
    return {};
}

/// The nodes enter the launcher's working directory by its name.
Result<void> check_directory() {
    std::error_code failure;
    static_cast<void>(std::filesystem::current_path(failure));
    if (failure)
        return Error{ErrorKind::environment,
                     fmt::format("the working directory cannot be found: {}. Start the job in a "
                                 "directory that every host has",
                                 failure.message())};
    return {};
}

Result<HostsRequest> make_request(const RunOptions& options) {
    auto request = request_for(options);
    if (!request) return request;
    std::uint32_t nodes = 0;
    if (!options.nodes.empty()) {
        const auto given = count_option("-n", options.nodes, nodes_max);
        if (!given) return given.error();
        nodes = *given;
    }
    auto hosts = parse_hosts(options.hosts, nodes);
    if (!hosts) return hosts.error();
    if (!options.hiroba.empty())
        request->runtime_folder = fmt::format("/tmp/hiroba-{}-{:x}", ::getpid(), now_ns());
    for (HostPlan& host : *hosts) host.hiroba = net::network_for_host(options.hiroba, host.name);
    request->plan.nodes = hosts->back().first_rank + hosts->back().nodes;
    request->hosts = std::move(*hosts);
    return request;
}

}  // namespace

Result<HostsRequest> request_for(const RunOptions& options) {
    HostsRequest request;
    if (options.command.empty())
        return Error{ErrorKind::usage, "no program was named. Name it behind the options"};
    if (const auto named = check_directory(); !named) return named.error();
    if (!options.bind_to.empty() && options.bind_to != "none")
        return Error{ErrorKind::usage, "--bind-to " + options.bind_to +
                                           ": nodes are bound on one host only; on several, let "
                                           "the batch system bind them"};
    request.plan.threads_per_node = 0;
    if (!options.threads.empty()) {
        const auto threads = count_option("--threads", options.threads, threads_max);
        if (!threads) return threads.error();
        request.plan.threads_per_node = *threads;
    }
    const auto grace = loss_grace_ns();
    if (!grace) return grace.error();
    request.plan.loss_grace_ns = *grace;
    const auto still = still_limit_ns();
    if (!still) return still.error();
    request.plan.still_ns = *still;
    request.plan.spmd = options.spmd;
    request.plan.command = options.command;
    request.command = options.ssh.empty() ? std::string(setting("HIROBA_SSH")) : options.ssh;
    request.verbose = options.verbose || logs(LogLayer::net, LogLevel::info);
    const auto start = setting_number("HIROBA_HOST_TIMEOUT");
    if (!start) return start.error();
    request.start_limit_s = *start;
    const auto silence = setting_number("HIROBA_PEER_TIMEOUT");
    if (!silence) return silence.error();
    request.silence_limit_s = *silence;
    return request;
}

int run_on_hosts(const RunOptions& options) {
    auto request = make_request(options);
    if (!request) return report(request.error());
    const auto job = draw_job_key();
    if (!job) return report(job.error());
    Copies copies;
    if (options.copy) {
        const auto sent = copies.send(request->command, options.command[0], request->hosts);
        if (!sent) return report(sent.error());
    }
    return run_request(std::move(*request), *job);
}

int run_request(HostsRequest request, const JobIdentity& job,
                std::optional<Rendezvous> rendezvous) {
    request.plan.hosts = static_cast<std::uint32_t>(request.hosts.size());
    if (const auto fits = check_provider(request.plan.hosts); !fits) return report(fits.error());
    warn_unknown_settings();
    auto signals = SignalWatch::open();
    if (!signals) return report(signals.error());

    RunPlan plan = request.plan;
    auto recording = JobRecording::begin(plan.command, plan.nodes, plan.threads_per_node);
    if (!recording) return report(recording.error());
    RemoteNodes nodes(std::move(request), job, *signals, std::move(rendezvous));
    // Addresses are named by the hosts, where the program's files are.
    RaceReport races(race_volume(), -1, plan);
    ControlServer control(
        std::vector<int>(plan.nodes, -1), race_sink(races), attach_sink(races),
        [&nodes](const net::ControlHeader& header, Bytes body) { nodes.broadcast(header, body); });
    CrashReport crashes;
    control.tell_crashes_to([&crashes](std::uint32_t, const net::CrashBody&,
                                       const std::string& report) { crashes.add(report); });
    nodes.bind(control);
    if (const auto failed = nodes.start()) return *failed;
    plan.threads_per_node = nodes.threads_per_node();
    const int status = Supervisor(plan, nodes, control, *signals).run();
    nodes.finish();
    sum_up(plan, control, races);
    recording->finish(status, plan.threads_per_node, races.told());
    if (status == 0) tell_idle_nodes(plan, control);
    return status;
}

}  // namespace hiroba::tools
