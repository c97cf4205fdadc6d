// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/relay.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "tools/run/crash_report.hpp"
#include "tools/run/stacks.hpp"
#include "tools/run/stillness.hpp"

namespace hiroba::tools {

using net::ControlHeader;
using net::ControlKind;
using net::ControlPacket;
using net::HostKind;
using net::Transfer;

namespace {

constexpr std::uint64_t finish_limit_ns = 2'000'000'000;

void append(std::vector<std::byte>& to, Bytes bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

Relay::Relay(net::HostLink& link, SignalWatch& signals, std::vector<NodeProcess>& nodes,
             std::uint32_t first_rank)
    : link_(link),
      signals_(signals),
      nodes_(nodes),
      first_rank_(first_rank),
      answers_(nodes.size()),
      names_(nodes[0].pid) {}

int Relay::run() {
    while (!over_) {
        wait();
        take_signals();
        take_frames();
        take_packets();
        reap();
        if (link_.fd() < 0) over_ = true;
    }
    finish();
    return status_;
}

void Relay::wait() {
    std::vector<pollfd> entries = {{link_.fd(), link_.events(), 0}, {signals_.fd(), POLLIN, 0}};
    // While the launcher does not keep up, nodes wait for room as they would for the launcher.
    const bool full = link_.unsent_bytes() > unsent_bytes_max;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const short in = full ? 0 : POLLIN;
        const short out = answers_[i].empty() ? 0 : POLLOUT;
        const int fd = in == 0 && out == 0 ? -1 : nodes_[i].socket;
        entries.push_back({fd, static_cast<short>(in | out), 0});
        entries.push_back({nodes_[i].alive ? nodes_[i].watch : -1, POLLIN, 0});
    }
    ::poll(entries.data(), entries.size(), -1);
}

void Relay::take_signals() {
    while (const auto info = signals_.next()) {
        const int number = static_cast<int>(info->ssi_signo);
        // The job's signals come by the launcher; one that is sent here is for the agent.
        if (number != SIGTERM && number != SIGINT && number != SIGHUP && number != SIGQUIT)
            continue;
        status_ = 128 + number;
        over_ = true;
    }
}

void Relay::take_frames() {
    link_.flush();
    while (const auto frame = link_.receive()) take_frame(*frame);
}

void Relay::take_frame(const net::HostFrame& frame) {
    switch (frame.header.kind) {
        case HostKind::answer: return answer(frame);
        case HostKind::signal:
            return signal_node(frame.header.rank, static_cast<int>(frame.header.number));
        case HostKind::user_signal:
            if (first_rank_ == 0 && nodes_[0].alive && !uses_user_signal(nodes_[0].pid))
                link_.send({HostKind::wants_stacks, 0, 0});
            else
                signal_node(0, SIGUSR1);
            return;
        case HostKind::stacks: return print_stacks(nodes_, first_rank_);
        case HostKind::ask_used: return link_.send({HostKind::used, 0, processor_time_ns(nodes_)});
        case HostKind::waits: return tell_waits(nodes_, first_rank_);
        default: over_ = true;  // end, or what no launcher of this build sends
    }
}

void Relay::signal_node(std::uint32_t rank, int number) {
    const std::size_t index = rank - first_rank_;
    if (index < nodes_.size() && nodes_[index].alive) tools::signal_node(nodes_[index], number);
}

void Relay::answer(const net::HostFrame& frame) {
    Answer answer;
    if (frame.body.size() < sizeof answer.header) return;
    std::memcpy(&answer.header, frame.body.data(), sizeof answer.header);
    answer.body = std::make_shared<const std::vector<std::byte>>(
        frame.body.begin() + sizeof answer.header, frame.body.end());
    if (answer.header.kind == ControlKind::gathered) {
        if (const auto held = held_.extract(answer.header.rank))
            answer.fd = share_descriptor(held.mapped());
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        answers_[i].push(answer);
        answers_[i].give(nodes_[i].socket);
    }
}

void Relay::take_packets() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        answers_[i].give(nodes_[i].socket);
        take_packets_of(i);
    }
}

void Relay::take_packets_of(std::size_t index) {
    NodeProcess& node = nodes_[index];
    const std::uint32_t rank = first_rank_ + static_cast<std::uint32_t>(index);
    ControlPacket packet;
    while (node.socket >= 0 && (link_.unsent_bytes() <= unsent_bytes_max || !node.alive)) {
        switch (net::receive_packet(node.socket, packet, false)) {
            case Transfer::done: pass_on(rank, packet); break;
            case Transfer::again: return;
            case Transfer::malformed: link_.send({HostKind::malformed, rank, 0}); break;
            case Transfer::closed:
                ::close(node.socket);
                node.socket = -1;
                answers_[index].clear();
        }
    }
}

void Relay::pass_on(std::uint32_t rank, ControlPacket& packet) {
    if (packet.header.kind == ControlKind::crashed) append_report(rank, packet);
    if (packet.fd >= 0) {
        const auto [held, fresh] = held_.try_emplace(rank, packet.fd);
        if (!fresh) ::close(std::exchange(held->second, packet.fd));
    }
    append_names(rank - first_rank_, packet);
    std::vector<std::byte> body;
    append(body, std::as_bytes(std::span(&packet.header, 1)));
    append(body, packet.body);
    link_.send({HostKind::packet, rank, 0}, body);
}

/// The thread waits until its stack has been read, which is done here: only for that.
void Relay::append_report(std::uint32_t rank, ControlPacket& packet) {
    net::CrashBody crash;
    if (packet.body.size() == sizeof crash) {
        std::memcpy(&crash, packet.body.data(), sizeof crash);
        const std::string report = describe_crash(rank, nodes_[rank - first_rank_].pid, crash);
        append(packet.body, std::as_bytes(std::span(report)));
    }
    if (packet.fd >= 0) ::close(std::exchange(packet.fd, -1));
}

/// Appends the names of a race or place behind the packet: the files that its addresses lie in are
/// on this host alone. All nodes have the files of the first.
void Relay::append_names(std::uint32_t index, ControlPacket& packet) {
    const auto append_text = [&packet](const std::string& text) {
        append(packet.body, std::as_bytes(std::span(text)));
    };
    switch (packet.header.kind) {
        case ControlKind::attached:
            // What tells an address may be read when its process has ended.
            if (index == 0) names_.files();
            return;
        case ControlKind::race: {
            net::RaceBody race;
            if (packet.body.size() != sizeof race) return;
            std::memcpy(&race, packet.body.data(), sizeof race);
            return append_text(names_.name(race.address) + "\n" + names_.place(race.place));
        }
        case ControlKind::place: {
            SyncPlace place;
            if (packet.body.size() < sizeof place || packet.header.number != 0) return;
            std::memcpy(&place, packet.body.data(), sizeof place);
            std::string& name = places_[{place.address, place.kind}];
            if (name.empty()) name = names_.place(place);
            packet.header.number = name.size();
            return append_text(name);
        }
        default: return;
    }
}

void Relay::reap() {
    for (const NodeEvent& event : reap_nodes(nodes_, first_rank_)) {
        const bool stopped = WIFSTOPPED(event.wait_status) || WIFCONTINUED(event.wait_status);
        if (!stopped) take_packets_of(event.rank - first_rank_);
        link_.send({stopped ? HostKind::stopped : HostKind::ended, event.rank,
                    static_cast<std::uint64_t>(event.wait_status) +
                        (event.untold ? net::host_ended_untold : 0)});
    }
}

bool Relay::any_alive() const {
    return std::ranges::any_of(nodes_, [](const NodeProcess& node) { return node.alive; });
}

/// No node stays, and the launcher hears of each end if it still listens.
void Relay::finish() {
    kill_nodes(nodes_);
    const std::uint64_t deadline = now_ns() + finish_limit_ns;
    constexpr int look_again_ms = 50;
    while ((any_alive() || (link_.fd() >= 0 && link_.unsent_bytes() > 0)) && now_ns() < deadline) {
        pollfd entries[] = {{signals_.fd(), POLLIN, 0},
                            {link_.unsent_bytes() > 0 ? link_.fd() : -1, POLLOUT, 0}};
        ::poll(entries, std::size(entries), look_again_ms);
        while (signals_.next()) {
        }
        reap();
        link_.flush();
    }
    for (NodeProcess& node : nodes_) {
        if (node.socket >= 0) ::close(node.socket);
        if (node.watch >= 0) ::close(node.watch);
    }
    for (const auto& [rank, fd] : held_) ::close(fd);
}

}  // namespace hiroba::tools
