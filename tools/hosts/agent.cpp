// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/agent.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_list.hpp"
#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "net/bootstrap/device.hpp"
#include "net/bootstrap/host_link.hpp"
#include "net/provider/this_host.hpp"
#include "tools/hosts/call_launcher.hpp"
#include "tools/hosts/relay.hpp"
#include "tools/hosts/startup_packet.hpp"
#include "tools/line.hpp"
#include "tools/machine.hpp"
#include "tools/run/adopted.hpp"
#include "tools/run/checks.hpp"
#include "tools/run/participation.hpp"

namespace hiroba::tools {

namespace {

constexpr int packet_limit_ms = 30'000;
constexpr int call_limit_ms = 20'000;

Error unfit(std::string text) { return {ErrorKind::environment, std::move(text)}; }

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Gives this process what the nodes are to inherit. `start-up packet` keeps the strings.
Result<void> become_like_launcher(StartupPacket& packet) {
    static std::vector<char*> entries;
    for (std::string& entry : packet.environment) entries.push_back(entry.data());
    entries.push_back(nullptr);
    environ = entries.data();
    ::umask(packet.umask);
    rlimit stack{};
    ::getrlimit(RLIMIT_STACK, &stack);
    stack.rlim_cur = packet.stack_limit;
    if (::setrlimit(RLIMIT_STACK, &stack) != 0)
        return unfit(fmt::format(
            "the stack limit here cannot be {} as at the launcher (hard "
            "limit {}): {}. Raise it, or lower ulimit -s at the launcher",
            size_text(packet.stack_limit), size_text(stack.rlim_max), ::strerror(errno)));
    if (::chdir(packet.directory.c_str()) != 0)
        return unfit(
            fmt::format("cannot enter {}, where the job was started: {}. Start it in a "
                        "directory that every host has",
                        packet.directory, ::strerror(errno)));
    return {};
}

/// The next frame; nothing when the launcher is gone.
std::optional<net::HostFrame> await_frame(net::HostLink& link) {
    for (;;) {
        if (auto frame = link.receive()) return frame;
        if (link.fd() < 0) return std::nullopt;
        pollfd entry{link.fd(), link.events(), 0};
        ::poll(&entry, 1, -1);
        link.flush();
    }
}

/// The link that stands for the runtime's folder while this lives.
class RuntimeLink {
public:
    RuntimeLink() = default;
    RuntimeLink(const RuntimeLink&) = delete;
    ~RuntimeLink() {
        if (!name_.empty()) ::unlink(name_.c_str());
    }
    /// Has `plan` name the runtime by it. Hosts of a test may share a disk: what is there is kept
    /// if it is this user's.
    Result<void> make(const std::string& name, RunPlan& plan) {
        if (name.empty() || plan.library.empty()) return {};
        const std::size_t slash = plan.library.rfind('/');
        struct stat there {};
        if (::symlink(plan.library.substr(0, slash).c_str(), name.c_str()) != 0 &&
            (::lstat(name.c_str(), &there) != 0 || there.st_uid != ::geteuid()))
            return unfit(fmt::format("cannot make {}: {}", name, ::strerror(errno)));
        name_ = name;
        plan.library = name + plan.library.substr(slash);
        return {};
    }

private:
    std::string name_;
};

/// All checks of this host that a job on one host makes before it starts, and the network.
Result<net::DeviceChoice> prepare(const std::string& host, RunPlan& plan,
                                  const net::HostFrame& peers) {
    plan.in_group = false;
    plan.threads_per_node = static_cast<std::uint32_t>(peers.header.number);
    std::vector<std::string> addresses;
    std::istringstream lines({reinterpret_cast<const char*>(peers.body.data()), peers.body.size()});
    for (std::string line; std::getline(lines, line);) addresses.push_back(line);
    if (auto found = look_up_program(plan); !found) return found.error();
    if (plan.first_rank == 0) tell_refused_constructs(plan);
    if (auto fit = check_machine(plan, look_at_machine()); !fit) return fit.error();
    net::DeviceChoice device{"none", "", "the job uses one host"};
    if (!addresses.empty()) {
        auto chosen =
            net::choose_device(net::network_for_host(setting("HIROBA_NET"), host), addresses);
        if (!chosen) return chosen.error();
        device = *chosen;
    }
    plan.network = device.address;
    return device;
}

int refuse(net::HostLink& link, const Error& error) {
    const int status = error.kind == ErrorKind::usage ? exit_usage : exit_environment;
    link.send({net::HostKind::refused, 0, static_cast<std::uint64_t>(status)},
              bytes_of(error.text));
    await_frame(link);  // The launcher ends the connection once it has read this.
    return status;
}

/// This process may run wherever one of its nodes may, so that it sees the processors of all.
void take_processors_of_nodes(const RunPlan& plan) {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (const std::string& text : plan.node_cpus)
        if (const auto cpus = parse_cpu_list(text)) CPU_OR(&all, &all, &*cpus);
    if (CPU_COUNT(&all) > 0) ::sched_setaffinity(0, sizeof all, &all);
}

int serve(StartupPacket& packet, net::HostLink& link) {
    take_processors_of_nodes(packet.plan);
    const net::HelloBody hello{net::this_host(), look_at_machine().cores()};
    link.send({net::HostKind::hello, 0, packet.host_index}, std::as_bytes(std::span(&hello, 1)));
    const bool adopts = !packet.plan.adopted_at.empty();
    if (const auto like = adopts ? Result<void>() : become_like_launcher(packet); !like)
        return refuse(link, like.error());
    const auto silence = setting_number("HIROBA_PEER_TIMEOUT");
    if (!silence) return refuse(link, silence.error());
    net::limit_silence(link.fd(), *silence);
    const auto peers = await_frame(link);
    if (!peers || peers->header.kind != net::HostKind::peers) return exit_environment;
    const auto device = prepare(packet.host, packet.plan, *peers);
    if (!device) return refuse(link, device.error());
    RuntimeLink runtime;
    if (const auto made = runtime.make(packet.runtime_folder, packet.plan); !made)
        return refuse(link, made.error());
    link.send({net::HostKind::ready, 0, 0}, bytes_of(device->name + "\n" + device->address));

    const auto go = await_frame(link);
    if (!go || go->header.kind != net::HostKind::go) return exit_environment;
    auto signals = SignalWatch::open();
    if (!signals) return refuse(link, signals.error());
    auto nodes = adopts ? adopt_nodes(packet.plan, packet.job, packet.host_index)
                        : start_nodes(packet.plan, packet.job, *signals);
    if (!nodes) return refuse(link, nodes.error());
    // Rank 0 has the only use for it, and the launcher must see when rank 0 closes it.
    ::close(STDIN_FILENO);
    std::vector<std::uint32_t> processes;
    for (const NodeProcess& node : *nodes)
        processes.push_back(static_cast<std::uint32_t>(node.pid));
    link.send({net::HostKind::started, 0, 0}, std::as_bytes(std::span(processes)));
    return Relay(link, *signals, *nodes, packet.plan.first_rank).run();
}

}  // namespace

int agent() {
    fill_standard_descriptors();
    auto packet = read_startup_packet(STDIN_FILENO, packet_limit_ms);
    if (!packet) {
        char host[256] = {};
        ::gethostname(host, sizeof host - 1);
        return report({packet.error().kind, fmt::format("{}: {}", host, packet.error().text)});
    }
    return agent(std::move(*packet));
}

int agent(StartupPacket packet) {
    auto link = call_launcher(packet, call_limit_ms);
    if (!link)
        return report(
            {link.error().kind, fmt::format("host {}: {}", packet.host, link.error().text)});
    return serve(packet, *link);
}

}  // namespace hiroba::tools
