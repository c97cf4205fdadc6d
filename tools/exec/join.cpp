// SPDX-License-Identifier: BSD-3-Clause
#include "tools/exec/join.hpp"

#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fatal.hpp"
#include "tools/exec/parts.hpp"
#include "tools/line.hpp"
#include "tools/run/adopted.hpp"
#include "tools/run/checks.hpp"

namespace hiroba::tools {

namespace {

using net::ControlHeader;
using net::ControlKind;
using net::ControlPacket;
using net::keeper_fd;
using net::Transfer;

/// The process that this one keeps.
struct Kept {
    int process = -1;
    std::uint32_t rank = 0;
    std::uint32_t processes = 0;
};

int not_for_users() {
    return report(
        {ErrorKind::usage,
         "hiroba join is started by hiroba's libraries alone, in a job of mpirun or srun"});
}

/// All of its process's descriptors but the socket would be held open for as long as this runs, and
/// a child that ends is seen by programs that wait for children of their own.
void leave_process() {
    ::syscall(SYS_close_range, keeper_fd + 1, ~0u, 0);
    ::setpgid(0, 0);
    if (::fork() > 0) ::_exit(0);
}

std::optional<Kept> meet() {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    ControlPacket packet;
    if (::getsockopt(keeper_fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
        net::receive_packet(keeper_fd, packet, true) != Transfer::done ||
        packet.header.kind != ControlKind::card)
        return std::nullopt;
    return Kept{peer.pid, packet.header.rank, static_cast<std::uint32_t>(packet.header.number)};
}

/// Ends the kept process. Every keeper finds the same: the first says so.
int refuse(const Kept& kept, const Error& error) {
    if (kept.rank == 0) say_line(error.text);
    const int status = status_of(error);
    net::send_packet(keeper_fd, {ControlKind::refused, 0, static_cast<std::uint64_t>(status)}, {},
                     -1, true);
    return status;
}

Result<std::vector<ExecCard>> exchange(const Kept& kept, const ExecCard& mine) {
    const auto gone = [] {
        return Error{ErrorKind::environment, "the process has ended while it joined a job"};
    };
    if (net::send_packet(keeper_fd, {ControlKind::card, kept.rank, 0}, write_card(mine), -1,
                         true) != Transfer::done)
        return gone();
    std::vector<ExecCard> cards;
    ControlPacket packet;
    while (cards.size() < kept.processes) {
        if (net::receive_packet(keeper_fd, packet, true) != Transfer::done) return gone();
        auto card = read_card(packet.body);
        if (!card) return card.error();
        cards.push_back(std::move(*card));
    }
    return cards;
}

/// The ranks of a host are its processes in their order.
std::uint32_t rank_of(const Placement& placement, std::uint32_t process) {
    std::uint32_t rank = placement.hosts[placement.host_of[process]].first_rank;
    for (std::uint32_t each = 0; each < process; ++each)
        if (placement.host_of[each] == placement.host_of[process]) ++rank;
    return rank;
}

/// Has the agent of this host take the kept process in, and hands on what it gives.
int hand_over(const Kept& kept, const Placement& placement, const ExecCard& first,
              const std::string& adopted_at) {
    const std::uint32_t rank = rank_of(placement, kept.rank);
    const auto adoption = be_adopted(adopted_at, placement.host_of[kept.rank],
                                     {first.key, first.key_high}, rank, kept.process);
    if (!adoption) {
        say_line(adoption.error().text);
        return refuse({kept.process, ~0u, 0}, adoption.error());
    }
    net::send_packet(keeper_fd, {ControlKind::joined, rank, 0},
                     std::as_bytes(std::span(&adoption->body, 1)), adoption->control, true);
    ::close(adoption->control);
    return 0;
}

std::string path_of(int process) {
    std::string path(4096, '\0');
    const ssize_t bytes =
        ::readlink(fmt::format("/proc/{}/exe", process).c_str(), path.data(), path.size());
    path.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return path;
}

/// While `serve`, which is launcher or agent, runs, a child hands the process over.
template <class Serve>
int keep(const Kept& kept, const Placement& placement, const ExecCard& first,
         const std::string& adopted_at, const Serve& serve) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(hand_over(kept, placement, first, adopted_at));
    const int status = serve();
    // Still there: the job has ended before it began, which has been said.
    if (::waitpid(child, nullptr, WNOHANG) == 0) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        net::send_packet(keeper_fd,
                         {ControlKind::refused, 0,
                          static_cast<std::uint64_t>(status != 0 ? status : exit_environment)},
                         {}, -1, false);
    }
    return status;
}

}  // namespace

int join() {
    int kind = 0;
    socklen_t bytes = sizeof kind;
    if (::getsockopt(keeper_fd, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0 || kind != SOCK_SEQPACKET)
        return not_for_users();
    leave_process();
    const auto kept = meet();
    if (!kept) return exit_environment;
    RunOptions options;
    options.spmd = true;
    options.threads = "1";
    options.command = {path_of(kept->process)};
    if (const auto ready = prepare_command(options); !ready) return refuse(*kept, ready.error());

    ExecCard mine = card_of_this_process();
    std::optional<Leading> leading;
    if (kept->rank == 0) {
        auto begun = begin_leading(mine);
        if (!begun) return refuse(*kept, begun.error());
        leading.emplace(std::move(*begun));
    }
    const auto cards = exchange(*kept, mine);
    if (!cards) return refuse(*kept, cards.error());
    const auto placement = place(*cards);
    if (!placement) return refuse(*kept, placement.error());
    const ExecCard& first = (*cards)[0];
    const std::string adopted_at = fmt::format("hiroba-join-{:x}-{}", first.host, first.port);
    const auto kept_while = [&](const auto& serve) {
        return keep(*kept, *placement, first, adopted_at, serve);
    };
    if (leading)
        return kept_while(
            [&] { return lead(options, std::move(*leading), *cards, *placement, adopted_at); });
    if (placement->leads(kept->rank))
        return kept_while(
            [&] { return follow(options, *cards, *placement, kept->rank, adopted_at); });
    return hand_over(*kept, *placement, first, adopted_at);
}

}  // namespace hiroba::tools
