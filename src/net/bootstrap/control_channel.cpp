// SPDX-License-Identifier: BSD-3-Clause
// Role: the node's side of the control channel.
// Invariant: nothing but answers to collectives and the deaths of nodes is ever sent to a node, so
// a collective that waits for its answer receives that or fails. Without a launcher the node is
// alone.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/fatal.hpp"
#include "net/bootstrap/control_packet.hpp"
#include "net/bootstrap/job.hpp"
#include "net/bootstrap/started.hpp"

namespace hiroba::net {

namespace {

Error launcher_gone(const JobInfo& job, const char* during) {
    return {ErrorKind::peer_lost, "rank " + std::to_string(job.self.value) +
                                      ": the launcher closed the control channel during " + during +
                                      " of " + std::to_string(job.nodes) + " nodes"};
}

/// The error of a death that was told while `during` waited for its answer.
Error peer_died(const JobInfo& job, const ControlPacket& packet, const char* during) {
    return {ErrorKind::peer_lost, "rank " + std::to_string(job.self.value) + ": node " +
                                      std::to_string(packet.header.rank) + " was lost during " +
                                      during + " of " + std::to_string(job.nodes) + " nodes"};
}

void close_all(std::vector<int>& fds) {
    for (int fd : fds)
        if (fd >= 0) ::close(fd);
    fds.clear();
}

}  // namespace

Result<ControlChannel::Gathered> ControlChannel::all_gather(Bytes mine, int fd) {
    if (mine.size() > gather_bytes_max)
        return Error{ErrorKind::refused, "all_gather of " + std::to_string(mine.size()) +
                                             " bytes; at most " + std::to_string(gather_bytes_max)};
    Gathered all;
    if (job_.control_fd < 0) {
        int copy = -1;
        if (fd >= 0 && (copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
            return Error{ErrorKind::internal, std::string("cannot duplicate descriptor ") +
                                                  std::to_string(fd) + ": " + std::strerror(errno)};
        all.bytes.emplace_back(mine.begin(), mine.end());
        all.fds.push_back(copy);
        return all;
    }
    const ControlHeader header{ControlKind::gather, job_.self.value, 0};
    if (send_packet(job_.control_fd, header, mine, fd, true) != Transfer::done)
        return launcher_gone(job_, "all_gather");
    all.bytes.resize(job_.nodes);
    all.fds.assign(job_.nodes, -1);
    ControlPacket packet;
    for (std::uint32_t rank = 0; rank < job_.nodes; ++rank) {
        const Transfer transfer = receive_packet(job_.control_fd, packet, true);
        if (transfer == Transfer::malformed) {
            close_all(all.fds);
            return Error{ErrorKind::environment, "rank " + std::to_string(job_.self.value) +
                                                     ": could not take a descriptor from rank " +
                                                     std::to_string(rank) +
                                                     ": raise the open files limit (ulimit -n)"};
        }
        if (transfer != Transfer::done) {
            close_all(all.fds);
            return launcher_gone(job_, "all_gather");
        }
        if (packet.header.kind == ControlKind::lost) {
            close_all(all.fds);
            return peer_died(job_, packet, "all_gather");
        }
        HIROBA_INVARIANT(packet.header.kind == ControlKind::gathered && packet.header.rank == rank,
                         "answer kind %u rank %u, wanted rank %u",
                         static_cast<unsigned>(packet.header.kind), packet.header.rank, rank);
        all.bytes[rank] = packet.body;
        all.fds[rank] = packet.fd;
    }
    return all;
}

Result<void> ControlChannel::barrier() {
    if (job_.control_fd < 0) return {};
    const ControlHeader header{ControlKind::barrier, job_.self.value, 0};
    ControlPacket packet;
    if (send_packet(job_.control_fd, header, {}, -1, true) != Transfer::done ||
        receive_packet(job_.control_fd, packet, true) != Transfer::done)
        return launcher_gone(job_, "a barrier");
    if (packet.header.kind == ControlKind::lost) return peer_died(job_, packet, "a barrier");
    HIROBA_INVARIANT(packet.header.kind == ControlKind::passed, "answer kind %u",
                     static_cast<unsigned>(packet.header.kind));
    return {};
}

void ControlChannel::request_exit(int status) noexcept {
    if (job_.control_fd < 0) ::_exit(status);
    const ControlHeader header{ControlKind::exit, job_.self.value,
                               static_cast<std::uint64_t>(status & 0xff)};
    // Without a launcher nobody else can end this node.
    if (send_packet(job_.control_fd, header, {}, -1, true) != Transfer::done) ::_exit(status);
}

void ControlChannel::report_counts(const NamedCount* counts, std::size_t count) noexcept {
    if (job_.control_fd < 0) return;
    constexpr std::size_t at_once = packet_body_max / sizeof(NamedCount);
    const ControlHeader header{ControlKind::counts, job_.self.value, 0};
    for (std::size_t first = 0; first < count; first += at_once) {
        const std::span part(counts + first, std::min(at_once, count - first));
        send_packet(job_.control_fd, header, std::as_bytes(part), -1, true);
    }
}

void ControlChannel::report_place(const SyncPlace& place, const NamedCount* counts,
                                  std::size_t count) noexcept {
    if (job_.control_fd < 0) return;
    HIROBA_INVARIANT(count <= place_counts_max, "%lu counts of one place", count);
    struct {
        SyncPlace place;
        NamedCount counts[place_counts_max];
    } body;
    body.place = place;
    std::copy_n(counts, count, body.counts);
    const Bytes bytes = std::as_bytes(std::span(&body, 1));
    send_packet(job_.control_fd, {ControlKind::place, job_.self.value, 0},
                bytes.first(sizeof place + count * sizeof(NamedCount)), -1, true);
}

void ControlChannel::report_race(std::uint64_t address, std::uint32_t bytes, NodeId writer,
                                 NodeId other, const SyncPlace& place,
                                 std::optional<std::uint32_t> stack_of) noexcept {
    if (job_.control_fd < 0) return;
    const std::uint32_t stack = stack_of ? *stack_of + 1 : 0;
    const RaceBody body{address, bytes, writer.value, other.value, stack, place};
    const ControlHeader header{ControlKind::race, job_.self.value, 0};
    send_packet(job_.control_fd, header, std::as_bytes(std::span(&body, 1)), -1, true);
}

void ControlChannel::report_participation(std::uint64_t regions, int status) noexcept {
    if (job_.control_fd < 0) return;
    const ControlHeader header{ControlKind::participation, job_.self.value, regions};
    const std::int32_t body = status & 0xff;
    send_packet(job_.control_fd, header, std::as_bytes(std::span(&body, 1)), -1, true);
}

void report_started(const JobInfo& job, const char* text, bool replaces) noexcept {
    constexpr std::size_t text_bytes_max = 200;
    if (job.control_fd < 0) return;
    const std::span<const char> bytes(text, strnlen(text, text_bytes_max));
    send_packet(job.control_fd, {ControlKind::started, job.self.value, replaces ? 1u : 0u},
                std::as_bytes(bytes), -1, true);
}

}  // namespace hiroba::net
