// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/remote_nodes.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "tools/line.hpp"

namespace hiroba::tools {

using net::HostKind;

namespace {

/// How long agents may take to leave when the job was ended, and commands to end behind them.
constexpr std::uint64_t finish_limit_ns = 1'500'000'000;

/// With its children, which would hold our standard output open: it leads a group of its own.
void kill_command(pid_t command) {
    ::kill(-command, SIGKILL);
    ::kill(command, SIGKILL);
}

bool ends_job(std::uint32_t number) {
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

bool has_ended(pid_t command) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(command), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == command;
}

std::string status_text(int wait_status) {
    return WIFSIGNALED(wait_status) ? "was killed by " + signal_text(WTERMSIG(wait_status))
                                    : fmt::format("ended with status {}", WEXITSTATUS(wait_status));
}

}  // namespace

RemoteNodes::~RemoteNodes() {
    for (const Host& host : hosts_) {
        if (host.command <= 0) continue;
        kill_command(host.command);
        ::waitpid(host.command, nullptr, 0);
    }
}

std::string RemoteNodes::name_of(std::uint32_t rank) const {
    return fmt::format("rank {} (process {} on host {})", rank, nodes_[rank].process,
                       hosts_[nodes_[rank].host].plan.name);
}

std::string RemoteNodes::ranks_of(const Host& host) const {
    const std::uint32_t first = host.plan.first_rank, last = first + host.plan.nodes - 1;
    return first == last ? fmt::format("rank {}", first)
                         : fmt::format("ranks {} to {}", first, last);
}

bool RemoteNodes::any_alive(const Host& host) const {
    for (std::uint32_t i = 0; i < host.plan.nodes; ++i)
        if (nodes_[host.plan.first_rank + i].alive) return true;
    return false;
}

void RemoteNodes::add_poll_entries(std::vector<pollfd>& entries) const {
    for (const Host& host : hosts_) {
        if (host.feed) host.feed->add_poll_entries(entries);
        if (host.link) entries.push_back({host.link->fd(), host.link->events(), 0});
    }
}

std::vector<NodeEvent> RemoteNodes::take_events() {
    serve_links();
    reap_commands();
    return std::exchange(events_, {});
}

void RemoteNodes::serve_links() {
    for (Host& host : hosts_) {
        if (host.feed) host.feed->serve();
        if (!host.link) continue;
        host.link->flush();
        while (const auto frame = host.link->receive()) take_frame(host, *frame);
        if (host.link->fd() < 0) lose(host, host.link->closed_why());
    }
}

void RemoteNodes::take_frame(Host& host, const net::HostFrame& frame) {
    const std::string text(reinterpret_cast<const char*>(frame.body.data()), frame.body.size());
    switch (frame.header.kind) {
        case HostKind::ready:
            host.stage = Stage::ready;
            host.address =
                text.substr(text.find('\n') + 1) + " (" + text.substr(0, text.find('\n')) + ")";
            return;
        case HostKind::refused:
            return fail(static_cast<int>(frame.header.number & 0xff),
                        fmt::format("host {}: {}", host.plan.name, text));
        case HostKind::started: return take_started(host, frame);
        case HostKind::wants_stacks: return print_stacks();
        case HostKind::used: host.used_ns = frame.header.number; return;
        default: return take_node_frame(host, frame);
    }
}

void RemoteNodes::take_started(Host& host, const net::HostFrame& frame) {
    if (frame.body.size() != host.plan.nodes * sizeof(std::uint32_t))
        return lose(host, "it started another number of nodes");
    for (std::uint32_t i = 0; i < host.plan.nodes; ++i) {
        RemoteNode& node = nodes_[host.plan.first_rank + i];
        std::memcpy(&node.process, frame.body.data() + i * sizeof node.process,
                    sizeof node.process);
        node.alive = true;
    }
    host.stage = Stage::started;
}

void RemoteNodes::take_node_frame(Host& host, const net::HostFrame& frame) {
    const std::uint32_t rank = frame.header.rank;
    const auto wait_status = static_cast<int>(frame.header.number);  // without the next bit
    const bool untold = (frame.header.number & net::host_ended_untold) != 0;
    const bool ours = rank - host.plan.first_rank < host.plan.nodes && control_ != nullptr;
    if (ours) {
        switch (frame.header.kind) {
            case HostKind::malformed: return control_->deliver_malformed(rank);
            case HostKind::ended: nodes_[rank].alive = false; [[fallthrough]];
            case HostKind::stopped: return events_.push_back({rank, wait_status, untold});
            case HostKind::packet: {
                net::ControlPacket packet;
                if (frame.body.size() < sizeof packet.header) break;
                std::memcpy(&packet.header, frame.body.data(), sizeof packet.header);
                packet.body.assign(frame.body.begin() + sizeof packet.header, frame.body.end());
                return control_->deliver(rank, packet, now_ns());
            }
            default: break;
        }
    }
    host.link->close(
        fmt::format("its agent sent frame {} of rank {}, which no agent of this build "
                    "sends",
                    static_cast<unsigned>(frame.header.kind), rank));
}

void RemoteNodes::lose(Host& host, const std::string& why) {
    const bool mattered = !ending_ && (any_alive(host) || host.stage < Stage::started);
    for (std::uint32_t i = 0; i < host.plan.nodes; ++i)
        nodes_[host.plan.first_rank + i].alive = false;
    if (!mattered) return;
    const std::string line = fmt::format("host {} with {} is lost: {}. Its nodes end with it",
                                         host.plan.name, ranks_of(host), why);
    if (host.stage < Stage::started) return fail(exit_environment, line);
    if (trouble_.empty()) trouble_ = line;
}

void RemoteNodes::reap_commands() {
    for (Host& host : hosts_) {
        if (host.command <= 0 || !has_ended(host.command)) continue;
        // Its group is named by its process number, which is its own until it is waited for.
        if (killed_ || host.stage == Stage::called) kill_command(host.command);
        int status = 0;
        ::waitpid(host.command, &status, 0);
        host.command = -1;
        command_ended(host, status);
    }
}

void RemoteNodes::command_ended(Host& host, int wait_status) {
    if (ending_) return;
    // The agent's own words come before its end.
    if (host.link) {
        while (const auto frame = host.link->receive()) take_frame(host, *frame);
    }
    if (host.stage == Stage::called) {
        const int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
        // With these the agent itself has said why.
        if (status == exit_usage || status == exit_environment) return fail(status, "");
        return fail(exit_environment,
                    fmt::format("host {}: `{}` {} before an agent came from there. Try `{}`",
                                host.plan.name, host.command_text, status_text(wait_status),
                                host.trial_text));
    }
    lose(host, fmt::format("`{}` {}", host.command_text, status_text(wait_status)));
}

void RemoteNodes::broadcast(const net::ControlHeader& header, Bytes body) {
    const Bytes head = std::as_bytes(std::span(&header, 1));
    std::vector<std::byte> bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    for (Host& host : hosts_)
        if (host.link) host.link->send({HostKind::answer, 0, 0}, bytes);
}

void RemoteNodes::send_all(HostKind kind) {
    for (Host& host : hosts_)
        if (host.link) host.link->send({kind, 0, 0});
}

void RemoteNodes::signal(std::uint32_t rank, int number) {
    Host& host = hosts_[nodes_[rank].host];
    if (number == SIGCONT && host.feed) host.feed->resume();
    if (nodes_[rank].alive)
        host.link->send({HostKind::signal, rank, static_cast<std::uint64_t>(number)});
}

void RemoteNodes::user_signal() {
    if (nodes_[0].alive) hosts_[nodes_[0].host].link->send({HostKind::user_signal, 0, 0});
}

void RemoteNodes::print_stacks() { send_all(HostKind::stacks); }

void RemoteNodes::tell_waits() { send_all(HostKind::waits); }

std::uint64_t RemoteNodes::processor_time_ns() {
    send_all(HostKind::ask_used);
    std::uint64_t sum = 0;
    for (const Host& host : hosts_) sum += host.used_ns;
    return sum;
}

void RemoteNodes::kill_all() {
    killed_ = true;
    ending_ = true;
    send_all(HostKind::end);
}

void RemoteNodes::finish() {
    if (!ending_) send_all(HostKind::end);
    ending_ = true;
    for (Host& host : hosts_) host.feed.reset();
    const std::uint64_t deadline = now_ns() + finish_limit_ns;
    constexpr int look_again_ms = 20;
    const auto waits_for = [&](const Host& host) {
        // Output of a job that ended by itself may take its time to pass through the command.
        const bool let_go = host.link && host.link->fd() < 0;
        return host.command > 0 && (now_ns() < deadline || (let_go && !killed_));
    };
    while (std::ranges::any_of(hosts_, waits_for)) {
        std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0}};
        add_poll_entries(entries);
        ::poll(entries.data(), entries.size(), look_again_ms);
        while (const auto info = signals_.next())
            if (ends_job(info->ssi_signo)) killed_ = true;
        serve_links();
        reap_commands();
    }
}

}  // namespace hiroba::tools
