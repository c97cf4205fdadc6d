// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/adopted.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <span>

#include "base/clock.hpp"

namespace hiroba::tools {

using net::ControlHeader;
using net::ControlKind;
using net::ControlPacket;
using net::Transfer;

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
/// Below what the launcher gives a host for its nodes.
constexpr std::uint64_t arrival_limit_ns = 25 * second_ns;
/// Above what the launcher gives all hosts to come.
constexpr std::uint64_t adoption_limit_ns = 120 * second_ns;

Error unfit(std::string text) { return {ErrorKind::environment, std::move(text)}; }

/// A name in the kernel, not a file.
struct Place {
    sockaddr_un address{};
    socklen_t bytes = 0;

    Place(const std::string& adopted_at, std::uint32_t host_index) {
        const std::string name = fmt::format("{}-{}", adopted_at, host_index);
        address.sun_family = AF_UNIX;
        const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
        std::memcpy(address.sun_path + 1, name.data(), length);
        bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

bool is_of_this_user(int socket) {
    ucred other{};
    socklen_t bytes = sizeof other;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 &&
           other.uid == ::geteuid();
}

net::JoinedBody body_of(const RunPlan& plan, const JobIdentity& job, std::uint32_t rank) {
    net::JoinedBody body;
    body.rank = rank;
    body.nodes = plan.nodes;
    body.threads_per_node = plan.threads_per_node;
    body.hosts = plan.hosts;
    body.key = {job.key, job.key_high};
    plan.network.copy(body.network, sizeof body.network - 1);
    return body;
}

/// Takes the node in that `guest` stands for. False: it is none of ours, or there already.
Result<bool> take_in(int guest, const RunPlan& plan, const JobIdentity& job,
                     std::vector<NodeProcess>& nodes) {
    ControlPacket packet;
    net::JobKey key;
    if (!is_of_this_user(guest) || net::receive_packet(guest, packet, true) != Transfer::done)
        return false;
    if (packet.header.kind != ControlKind::join || packet.body.size() != sizeof key) return false;
    std::memcpy(&key, packet.body.data(), sizeof key);
    const std::uint32_t here = packet.header.rank - plan.first_rank;
    if (key.low != job.key || key.high != job.key_high || here >= nodes.size() || nodes[here].alive)
        return false;
    const auto process = static_cast<pid_t>(packet.header.number);
    int ends[2];
    const auto watch = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
    if (watch < 0 || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return unfit(fmt::format("cannot watch rank {} (process {}): {}. Raise ulimit -n",
                                 packet.header.rank, process, ::strerror(errno)));
    const auto body = body_of(plan, job, packet.header.rank);
    const ControlHeader answer{ControlKind::joined, packet.header.rank, 0};
    net::send_packet(guest, answer, std::as_bytes(std::span(&body, 1)), ends[1], true);
    ::close(ends[1]);
    nodes[here] = {process, ends[0], true, watch};
    return true;
}

std::string missing(const std::vector<NodeProcess>& nodes, std::uint32_t first_rank) {
    std::string ranks;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (!nodes[i].alive)
            ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", first_rank + i);
    return ranks;
}

/// Takes nodes in until all are there.
Result<void> take_all(int listener, const RunPlan& plan, const JobIdentity& job,
                      std::vector<NodeProcess>& nodes) {
    const std::uint64_t deadline = now_ns() + arrival_limit_ns;
    for (std::uint32_t count = 0; count < nodes.size();) {
        const std::uint64_t now = now_ns();
        if (now >= deadline)
            return unfit(fmt::format("rank {} did not join the job within {} s of the others",
                                     missing(nodes, plan.first_rank),
                                     arrival_limit_ns / second_ns));
        pollfd entry{listener, POLLIN, 0};
        ::poll(&entry, 1, static_cast<int>((deadline - now) / 1'000'000 + 1));
        const int guest = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (guest < 0) continue;
        const timeval limit{1, 0};
        ::setsockopt(guest, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        const auto taken = take_in(guest, plan, job, nodes);
        ::close(guest);
        if (!taken) return taken.error();
        if (*taken) ++count;
    }
    return {};
}

}  // namespace

Result<std::vector<NodeProcess>> adopt_nodes(const RunPlan& plan, const JobIdentity& job,
                                             std::uint32_t host_index) {
    const Place place(plan.adopted_at, host_index);
    const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || ::bind(listener, place.get(), place.bytes) != 0 ||
        ::listen(listener, static_cast<int>(plan.nodes_here())) != 0) {
        const Error error =
            unfit(fmt::format("cannot listen for the nodes of this host: {}", ::strerror(errno)));
        if (listener >= 0) ::close(listener);
        return error;
    }
    std::vector<NodeProcess> nodes(plan.nodes_here());
    const auto taken = take_all(listener, plan, job, nodes);
    ::close(listener);
    if (taken) return nodes;
    kill_nodes(nodes);
    for (const NodeProcess& node : nodes) {
        if (node.socket >= 0) ::close(node.socket);
        if (node.watch >= 0) ::close(node.watch);
    }
    return taken.error();
}

Result<Adoption> be_adopted(const std::string& adopted_at, std::uint32_t host_index,
                            const net::JobKey& key, std::uint32_t rank, int process) {
    const Place place(adopted_at, host_index);
    const std::uint64_t deadline = now_ns() + adoption_limit_ns;
    constexpr unsigned look_again_us = 2'000;
    int agent = -1;
    while (agent < 0) {
        agent = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (agent >= 0 && ::connect(agent, place.get(), place.bytes) == 0) break;
        if (agent >= 0) ::close(agent);
        agent = -1;
        if (now_ns() >= deadline)
            return unfit(fmt::format("rank {}: no agent of the job came on this host within {} s",
                                     rank, adoption_limit_ns / second_ns));
        ::usleep(look_again_us);
    }
    ControlPacket packet;
    Adoption adoption;
    const ControlHeader header{ControlKind::join, rank, static_cast<std::uint64_t>(process)};
    const bool known = is_of_this_user(agent) &&
                       net::send_packet(agent, header, std::as_bytes(std::span(&key, 1)), -1,
                                        true) == Transfer::done &&
                       net::receive_packet(agent, packet, true) == Transfer::done &&
                       packet.header.kind == ControlKind::joined && packet.fd >= 0 &&
                       packet.body.size() == sizeof adoption.body;
    ::close(agent);
    if (!known)
        return unfit(fmt::format("rank {}: the agent of this host does not take it in", rank));
    std::memcpy(&adoption.body, packet.body.data(), sizeof adoption.body);
    adoption.control = packet.fd;
    return adoption;
}

}  // namespace hiroba::tools
