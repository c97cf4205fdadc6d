// SPDX-License-Identifier: BSD-3-Clause
// Role: from the names of hosts to running nodes: call, gather, compare, agree, go.
#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "net/provider/this_host.hpp"
#include "tools/hosts/remote_nodes.hpp"
#include "tools/line.hpp"
#include "tools/machine.hpp"

namespace hiroba::tools {

using net::HostKind;

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
/// How long checks and forks on a host may take.
constexpr std::uint64_t step_limit_ns = 30 * second_ns;

}  // namespace

RemoteNodes::RemoteNodes(HostsRequest request, const JobIdentity& job, SignalWatch& signals,
                         std::optional<Rendezvous> rendezvous)
    : request_(std::move(request)),
      job_(job),
      signals_(signals),
      rendezvous_(std::move(rendezvous)),
      nodes_(request_.plan.nodes) {
    for (std::uint32_t i = 0; i < request_.hosts.size(); ++i) {
        hosts_.emplace_back();
        hosts_.back().plan = request_.hosts[i];
        const HostPlan& plan = request_.hosts[i];
        for (std::uint32_t r = 0; r < plan.nodes; ++r) nodes_[plan.first_rank + r].host = i;
    }
}

std::optional<int> RemoteNodes::start() {
    const bool started =
        call_hosts() && await_stage(Stage::joined, request_.start_limit_s * second_ns) &&
        check_hosts() && (send_peers(), await_stage(Stage::ready, step_limit_ns)) &&
        check_addresses();
    if (started) {
        rendezvous_->close();
        say_places();
        send_all(HostKind::go);
        if (await_stage(Stage::started, step_limit_ns)) return std::nullopt;
    }
    killed_ = true;
    finish();
    return failed_;
}

StartupPacket RemoteNodes::startup_packet_for(std::size_t index, std::uint16_t port) const {
    StartupPacket packet;
    const HostPlan& host = hosts_[index].plan;
    packet.host = host.name;
    packet.runtime_folder = request_.runtime_folder;
    packet.host_index = static_cast<std::uint32_t>(index);
    packet.job = job_;
    packet.plan = request_.plan;
    packet.plan.first_rank = host.first_rank;
    packet.plan.local_nodes = host.nodes;
    packet.callers = reachable_addresses();
    packet.port = port;
    packet.plan.node_cpus = host.node_cpus;
    if (!host.program.empty()) packet.plan.command[0] = host.program;
    describe_this_process(packet);
    return packet;
}

bool RemoteNodes::call_hosts() {
    if (!rendezvous_) {
        auto rendezvous = Rendezvous::open({job_.key, job_.key_high});
        if (!rendezvous) return fail(report(rendezvous.error()), ""), false;
        rendezvous_.emplace(std::move(*rendezvous));
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        Host& host = hosts_[i];
        host.command_text = "hiroba agent";
        // The outer launcher has started the other hosts' agents, and this one has its own.
        if (request_.agents_come && i > 0) continue;
        const auto words = request_.agents_come
                               ? own_agent_words()
                               : agent_words(request_.command, host.plan.name, host.plan.hiroba);
        if (!words) return fail(report(words.error()), ""), false;
        auto command = start_command(*words, signals_);
        if (!command) return fail(report(command.error()), ""), false;
        if (!request_.agents_come) host.command_text = request_.command + " " + host.plan.name;
        host.trial_text = host.command_text + " " + words->end()[-2] + " --version";
        host.command = command->pid;
        host.feed.emplace(command->input,
                          write_startup_packet(startup_packet_for(i, rendezvous_->port())),
                          host.plan.first_rank == 0);
    }
    return true;
}

bool RemoteNodes::await_stage(Stage stage, std::uint64_t limit_ns) {
    const std::uint64_t deadline = now_ns() + limit_ns;
    constexpr int look_again_ms = 500;  // strangers have a time limit
    while (!failed_ && std::ranges::any_of(hosts_, [&](auto& h) { return h.stage < stage; })) {
        const std::uint64_t now = now_ns();
        if (now >= deadline) {
            const char* const what =
                stage == Stage::joined ? "no agent came from" : "no answer came from";
            const std::string works =
                request_.agents_come ? "" : fmt::format("that `{} HOST` works, ", request_.command);
            fail(exit_environment,
                 fmt::format("{} {} within {} s. Check that the host is up, {}and that it may "
                             "connect to this one; or raise HIROBA_HOST_TIMEOUT",
                             what, missing(stage), limit_ns / second_ns, works));
            break;
        }
        std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0}};
        if (rendezvous_) rendezvous_->add_poll_entries(entries);
        add_poll_entries(entries);
        const auto left_ms = static_cast<int>((deadline - now) / 1'000'000 + 1);
        ::poll(entries.data(), entries.size(), std::min(left_ms, look_again_ms));
        if (!take_start_signals()) break;
        take_arrivals();
        serve_links();
        reap_commands();
    }
    return !failed_;
}

bool RemoteNodes::take_start_signals() {
    while (const auto info = signals_.next()) {
        const int number = static_cast<int>(info->ssi_signo);
        if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT)
            fail(128 + number, "");
    }
    return !failed_;
}

void RemoteNodes::take_arrivals() {
    for (Arrival& arrival : rendezvous_->serve(now_ns())) {
        if (arrival.host_index >= hosts_.size()) continue;
        Host& host = hosts_[arrival.host_index];
        if (host.link) continue;
        host.address = arrival.link.peer_address();
        host.hello = arrival.hello;
        host.link.emplace(std::move(arrival.link));
        host.stage = Stage::joined;
        net::limit_silence(host.link->fd(), request_.silence_limit_s);
    }
}

/// Two names may be one host, whose nodes could not share memory under two agents.
bool RemoteNodes::check_hosts() {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
        for (std::size_t j = i + 1; j < hosts_.size(); ++j)
            if (hosts_[i].hello.host == hosts_[j].hello.host)
                fail(exit_usage,
                     fmt::format("--hosts: {} and {} are one host. Write it once, with the number "
                                 "of its nodes: {}:{}",
                                 hosts_[i].plan.name, hosts_[j].plan.name, hosts_[i].plan.name,
                                 hosts_[i].plan.nodes + hosts_[j].plan.nodes));
    return !failed_;
}

/// A device that HIROBA_NET forces may have one address on several hosts: a bridge of containers,
/// say, or loopback. Nodes would talk to themselves.
bool RemoteNodes::check_addresses() {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
        for (std::size_t j = i + 1; j < hosts_.size(); ++j)
            if (hosts_[i].address == hosts_[j].address)
                fail(exit_usage,
                     fmt::format("hosts {} and {} both have network device {}, which cannot lead "
                                 "from one to the other. Unset HIROBA_NET, or name another",
                                 hosts_[i].plan.name, hosts_[j].plan.name, hosts_[i].address));
    return !failed_;
}

/// Under which `host` reaches `other`. An agent on this launcher's own host may have called any
/// address of it, perhaps one that leads nowhere else: there the other's own call is the witness.
std::string RemoteNodes::address_for(const Host& host, const Host& other) const {
    const bool is_here = other.hello.host == net::this_host();
    return is_here ? host.link->own_address() : other.address;
}

void RemoteNodes::send_peers() {
    std::uint32_t& threads = request_.plan.threads_per_node;
    if (threads == 0) {
        threads = threads_max;
        for (const Host& host : hosts_)
            threads = std::min(threads, static_cast<std::uint32_t>(std::max<std::uint64_t>(
                                            1, host.hello.cores / host.plan.nodes)));
    }
    for (Host& host : hosts_) {
        std::string peers;
        for (const Host& other : hosts_)
            if (&other != &host) peers += address_for(host, other) + "\n";
        host.link->send({HostKind::peers, 0, threads}, std::as_bytes(std::span(peers)));
    }
}

void RemoteNodes::say_places() const {
    if (!request_.verbose) return;
    for (const Host& host : hosts_)
        say_line(fmt::format("host {}: {}, network device {}, {} threads a node", host.plan.name,
                             ranks_of(host), host.address, request_.plan.threads_per_node));
}

/// The first failure counts. @param line  empty: it has been said, or the user knows
void RemoteNodes::fail(int status, const std::string& line) {
    if (failed_) return;
    failed_ = status;
    if (!line.empty()) say_line(line);
}

std::string RemoteNodes::missing(Stage stage) const {
    std::string names;
    for (const Host& host : hosts_)
        if (host.stage < stage) names += (names.empty() ? "host " : ", ") + host.plan.name;
    return names;
}

}  // namespace hiroba::tools
