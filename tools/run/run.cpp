// SPDX-License-Identifier: BSD-3-Clause
// Role: the life of a job in order: check everything, start the nodes, serve them, sum up.
#include "tools/run/run.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/settings.hpp"
#include "tools/line.hpp"
#include "tools/machine.hpp"
#include "tools/run/control_server.hpp"
#include "tools/run/nodes.hpp"
#include "tools/run/plan.hpp"
#include "tools/run/program.hpp"
#include "tools/run/race_report.hpp"
#include "tools/run/signals.hpp"
#include "tools/run/stats_table.hpp"
#include "tools/run/supervisor.hpp"

namespace hiroba::tools {

namespace {

Result<std::uint32_t> count_option(const char* option, const std::string& text, std::uint32_t max) {
    std::uint32_t value = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || value < 1 || value > max)
        return Error{ErrorKind::usage, fmt::format("{} {}: wanted a whole number from 1 to {}. "
                                                   "Change {}",
                                                   option, text, max, option)};
    return value;
}

Result<RunPlan> make_plan(const RunOptions& options, const Machine& machine) {
    if (options.command.empty())
        return Error{ErrorKind::usage,
                     "no program was named. Use hiroba run -n N program [arguments]"};
    RunPlan plan;
    plan.spmd = options.spmd;
    plan.command = options.command;
    const auto nodes = count_option("-n", options.nodes, nodes_max);
    if (!nodes) return nodes.error();
    plan.nodes = *nodes;
    plan.threads_per_node = std::clamp(machine.cores() / plan.nodes, 1u, threads_max);
    if (!options.threads.empty()) {
        const auto threads = count_option("--threads", options.threads, threads_max);
        if (!threads) return threads.error();
        plan.threads_per_node = *threads;
    }
    auto program = find_program(plan.command[0]);
    if (!program) return program.error();
    plan.program = *program;
    if (plan.spmd) return plan;
    if (auto fit = check_can_take_over(plan.program); !fit) return fit.error();
    auto library = find_library();
    if (!library) return library.error();
    plan.library = *library;
    return plan;
}

Result<void> check_machine(const RunPlan& plan, const Machine& machine) {
    const auto sizes = space_sizes();
    if (!sizes) return sizes.error();
    if (auto room = check_room(plan, *sizes, machine); !room) return room;
    if (!fix_addresses())
        return Error{ErrorKind::environment,
                     fmt::format("personality(ADDR_NO_RANDOMIZE = 0x40000) was refused: {}. Nodes "
                                 "must be loaded at equal addresses: allow the call in the "
                                 "container's seccomp profile (docker run --security-opt "
                                 "seccomp=unconfined)",
                                 ::strerror(errno))};
    return {};
}

/// Descriptors 0 to 2 that are closed would be given to control channels.
void fill_standard_descriptors() {
    int fd;
    do {
        fd = ::open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) ::close(fd);
}

void warn_unknown_settings() {
    std::istringstream names(unknown_settings());
    for (std::string name; names >> name;)
        say_line(
            fmt::format("{} is no variable of hiroba and has no effect. See hiroba info -c", name));
}

void show_stats(const ControlServer& control, std::uint32_t nodes,
                const std::vector<LoadedFile>& files) {
    const std::string wanted(setting("HIROBA_STATS"));
    if (wanted == "0") return;
    constexpr std::string_view to_file = "json:";
    if (wanted.starts_with(to_file)) {
        const std::string path = wanted.substr(to_file.size());
        std::ofstream file(path);
        if (!(file << stats_json(control, nodes, files)).flush())
            say_line(fmt::format("HIROBA_STATS={}: {} cannot be written. Name another file", wanted,
                                 path));
        return;
    }
    std::string table = stats_table(control, nodes);
    if (wanted == "full") table += "\n" + places_table(control, nodes, files);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, table.data(), table.size());
}

int serve(const RunPlan& plan, std::vector<Node>& nodes, SignalWatch& signals) {
    const std::string_view races = setting("HIROBA_RACE");
    RaceReport race_report(races == "off"   ? RaceReport::Volume::none
                           : races == "all" ? RaceReport::Volume::all
                                            : RaceReport::Volume::some,
                           nodes[0].pid, plan.threads_per_node);
    std::vector<int> sockets;
    for (const Node& node : nodes) sockets.push_back(node.socket);
    // Read while the process lives: its end comes before the counters are printed.
    std::vector<LoadedFile> files;
    ControlServer control(
        sockets, [&](const net::RaceBody& race) { race_report.add(race); },
        [&](std::uint32_t rank) {
            if (files.empty() && setting("HIROBA_STATS") != "0")
                files = loaded_files(nodes[rank].pid);
        });
    const int status = Supervisor(plan, nodes, control, signals).run();
    race_report.finish();
    show_stats(control, plan.nodes, files);
    return status;
}

}  // namespace

int run(const RunOptions& options) {
    fill_standard_descriptors();
    const Machine machine = look_at_machine();
    if (const auto valid = check_settings(); !valid) return report(valid.error());
    const auto plan = make_plan(options, machine);
    if (!plan) return report(plan.error());
    if (const auto fit = check_machine(*plan, machine); !fit) return report(fit.error());
    warn_unknown_settings();

    auto signals = SignalWatch::open();
    if (!signals) return report(signals.error());
    auto nodes = start_nodes(*plan, *signals);
    if (!nodes) return report(nodes.error());
    return serve(*plan, *nodes, *signals);
}

}  // namespace hiroba::tools
