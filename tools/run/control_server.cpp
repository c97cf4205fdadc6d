// SPDX-License-Identifier: BSD-3-Clause
// Role: one pass over the packets that have come, and the answers.
#include "tools/run/control_server.hpp"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <utility>

namespace hiroba::tools {

using net::ControlKind;
using net::ControlPacket;
using net::Transfer;

ControlServer::ControlServer(std::vector<int> sockets, RaceSink race_sink, AttachSink attach_sink,
                             FarSink far)
    : ends_(sockets.size()),
      race_sink_(std::move(race_sink)),
      attach_sink_(std::move(attach_sink)),
      far_(std::move(far)) {
    for (std::size_t rank = 0; rank < sockets.size(); ++rank) ends_[rank].socket = sockets[rank];
}

ControlServer::~ControlServer() {
    for (End& end : ends_) {
        close(end);
        if (end.gathered_fd >= 0) ::close(end.gathered_fd);
    }
}

std::vector<pollfd> ControlServer::poll_entries() const {
    std::vector<pollfd> entries;
    for (const End& end : ends_) {
        const short events = end.answers.empty() ? POLLIN : POLLIN | POLLOUT;
        entries.push_back({end.socket, events, 0});
    }
    return entries;
}

void ControlServer::serve_all(std::uint64_t now_ns) {
    for (std::uint32_t rank = 0; rank < ends_.size(); ++rank) serve(rank, now_ns);
}

void ControlServer::serve(std::uint32_t rank, std::uint64_t now_ns) {
    End& end = ends_[rank];
    end.answers.give(end.socket);
    ControlPacket packet;
    while (end.socket >= 0) {
        switch (net::receive_packet(end.socket, packet, false)) {
            case Transfer::done: take(rank, packet, now_ns); break;
            case Transfer::again: return;
            case Transfer::closed: close(end); break;
            case Transfer::malformed: return deliver_malformed(rank);
        }
    }
}

void ControlServer::deliver_malformed(std::uint32_t rank) {
    broken_ = fmt::format(
        "rank {} wrote something else than a packet of ours to the control channel. The program "
        "must leave descriptors it did not open alone",
        rank);
}

void ControlServer::take(std::uint32_t rank, ControlPacket& packet, std::uint64_t now_ns) {
    End& end = ends_[rank];
    const auto size_is = [&](std::size_t bytes) { return packet.body.size() == bytes; };
    bool understood = packet.header.rank == rank;
    if (understood && !end.attached) {
        end.attached = true;
        attach_sink_(rank);
    }
    switch (understood ? packet.header.kind : ControlKind::passed) {
        case ControlKind::attached: understood = size_is(0); break;
        case ControlKind::gather:
        case ControlKind::barrier: return arrive(rank, packet, now_ns);
        case ControlKind::exit:
            if (!exit_requested_) exit_requested_ = static_cast<int>(packet.header.number & 0xff);
            break;
        case ControlKind::counts:
            understood = packet.body.size() % sizeof(net::NamedCount) == 0;
            if (!understood) break;
            for (ReportedCount& count : counts_in(packet.body))
                end.counts.push_back(std::move(count));
            break;
        case ControlKind::place: understood = take_place(end, packet); break;
        case ControlKind::race: {
            net::RaceBody race;
            understood = packet.body.size() >= sizeof race;
            if (!understood) break;
            ::memcpy(&race, packet.body.data(), sizeof race);
            race_sink_(race, {reinterpret_cast<const char*>(packet.body.data()) + sizeof race,
                              packet.body.size() - sizeof race});
            break;
        }
        case ControlKind::crashed: understood = take_crash(rank, packet); break;
        case ControlKind::started:
            end.started = {
                std::string(reinterpret_cast<const char*>(packet.body.data()), packet.body.size()),
                packet.header.number == 1};
            break;
        case ControlKind::participation: {
            std::int32_t status = 0;
            understood = size_is(sizeof status);
            if (!understood) break;
            ::memcpy(&status, packet.body.data(), sizeof status);
            end.regions = packet.header.number;
            end.status = status;
            break;
        }
        default: understood = false;
    }
    if (packet.fd >= 0) ::close(packet.fd);
    if (!understood)
        broken_ = fmt::format(
            "rank {} sent a control packet of no known kind (kind {}, rank {}, "
            "{} bytes). The runtime and this command must be of one build",
            rank, static_cast<unsigned>(packet.header.kind), packet.header.rank,
            packet.body.size());
}

/// False when the packet is no crash.
bool ControlServer::take_crash(std::uint32_t rank, const ControlPacket& packet) {
    net::CrashBody crash;
    if (packet.body.size() < sizeof crash) return false;
    ::memcpy(&crash, packet.body.data(), sizeof crash);
    const Bytes report = Bytes{packet.body}.subspan(sizeof crash);
    if (crash_sink_)
        crash_sink_(rank, crash, {reinterpret_cast<const char*>(report.data()), report.size()});
    return true;
}

/// False when the packet is no place.
bool ControlServer::take_place(End& end, const ControlPacket& packet) {
    SyncPlace place;
    const Bytes body{packet.body};
    if (body.size() < sizeof place || packet.header.number > body.size() - sizeof place)
        return false;
    const std::size_t name_bytes = packet.header.number;
    const std::size_t counts_bytes = body.size() - sizeof place - name_bytes;
    if (counts_bytes % sizeof(net::NamedCount) != 0) return false;
    ::memcpy(&place, body.data(), sizeof place);
    const Bytes name = body.last(name_bytes);
    end.places.push_back({place,
                          {reinterpret_cast<const char*>(name.data()), name.size()},
                          counts_in(body.subspan(sizeof place, counts_bytes))});
    return true;
}

void ControlServer::arrive(std::uint32_t rank, ControlPacket& packet, std::uint64_t now_ns) {
    End& end = ends_[rank];
    if (end.arrived) {
        if (packet.fd >= 0) ::close(packet.fd);
        broken_ = fmt::format(
            "rank {} began a collective while it waits in another. Collectives "
            "belong to one thread",
            rank);
        return;
    }
    // A node that opens another network after the end of one has not left.
    if (packet.header.kind == ControlKind::gather) {
        end.regions.reset();
        end.status.reset();
    }
    end.arrived = packet.header.kind;
    end.gathered = std::move(packet.body);
    end.gathered_fd = packet.fd;
    if (arrived_++ == 0) waiting_since_ns_ = now_ns;
    if (arrived_ < ends_.size()) return;
    for (std::uint32_t other = 1; other < ends_.size(); ++other) {
        if (ends_[other].arrived == ends_[0].arrived &&
            ends_[other].gathered.size() == ends_[0].gathered.size())
            continue;
        broken_ = fmt::format(
            "rank {} is in collective {} with {} bytes, rank 0 in {} with {}. All "
            "nodes must run one build with one set of variables",
            other, static_cast<unsigned>(*ends_[other].arrived), ends_[other].gathered.size(),
            static_cast<unsigned>(*ends_[0].arrived), ends_[0].gathered.size());
        return;
    }
    answer_all();
}

void ControlServer::answer_all() {
    std::vector<Answer> answers;
    for (std::uint32_t rank = 0; rank < ends_.size(); ++rank) {
        End& end = ends_[rank];
        if (*end.arrived == ControlKind::barrier) {
            answers.push_back({{ControlKind::passed, 0, 0}, nullptr, nullptr});
            break;
        }
        const SharedDescriptor fd = share_descriptor(std::exchange(end.gathered_fd, -1));
        answers.push_back({{ControlKind::gathered, rank, 0},
                           std::make_shared<const std::vector<std::byte>>(std::move(end.gathered)),
                           fd});
    }
    arrived_ = 0;
    waiting_since_ns_ = 0;
    for (End& end : ends_) {
        end.arrived.reset();
        end.gathered.clear();
        if (end.socket < 0) continue;
        for (const Answer& answer : answers) end.answers.push(answer);
        end.answers.give(end.socket);
    }
    if (!far_) return;
    for (const Answer& answer : answers)
        far_(answer.header, answer.body ? Bytes(*answer.body) : Bytes());
}

std::vector<ReportedCount> ControlServer::counts_in(Bytes body) {
    std::vector<ReportedCount> counts;
    for (std::size_t at = 0; at < body.size(); at += sizeof(net::NamedCount)) {
        net::NamedCount count;
        ::memcpy(&count, body.data() + at, sizeof count);
        counts.push_back(
            {std::string(count.name, ::strnlen(count.name, sizeof count.name)), count.value});
    }
    return counts;
}

void ControlServer::tell_lost(std::uint32_t rank) {
    for (End& end : ends_) {
        if (&end == &ends_[rank] || end.socket < 0) continue;
        end.answers.push({{ControlKind::lost, rank, 0}, nullptr, nullptr});
        end.answers.give(end.socket);
    }
    if (far_) far_({ControlKind::lost, rank, 0}, Bytes());
}

std::string ControlServer::missing_ranks() const {
    std::string missing;
    for (std::uint32_t rank = 0; rank < ends_.size(); ++rank)
        if (!ends_[rank].arrived) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
    return missing;
}

void ControlServer::close(End& end) {
    if (end.socket >= 0) ::close(end.socket);
    end.socket = -1;
    end.answers.clear();
}

}  // namespace hiroba::tools
