// SPDX-License-Identifier: BSD-3-Clause
// Role: what nodes and the launcher say to each other on the control channel, and how one packet
// is sent and received. Both ends are built together and run on one host.
// Invariant: one packet is one datagram: a header, a body of at most packet_body_max bytes, and at
// most one file descriptor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "net/bootstrap/job.hpp"

namespace hiroba::net {

enum class ControlKind : std::uint32_t {
    attached = 1,   ///< node: the runtime runs in this process
    gather,         ///< node: its part of an all_gather; answered by one `gathered` per node
    barrier,        ///< node: arrived; answered by `passed`
    exit,           ///< node: end the job; number = status
    counts,         ///< node: body = NamedCount[]
    race,           ///< node: body = RaceBody
    participation,  ///< node: number = regions, body = its status as std::int32_t; the node leaves
    gathered,       ///< launcher: rank = whose part the body is
    passed,         ///< launcher: every node is at the barrier
    lost,           ///< launcher: node `rank` is dead; at any time (HIROBA_LOSS_GRACE)
    place,          ///< node: body = SyncPlace, NamedCount[]; agent: and the place's name, of
                    ///< `number` bytes
    started,        ///< node: body = what it starts outside of the job; number 1: in its own place
    crashed,        ///< node: body = CrashBody; agent: and the report's text. The node waits until
                    ///< the descriptor is closed
    card,           ///< between a process and its keeper (keeper.hpp): what one process is; the
                    ///< process asks with rank, and number = processes of the job
    join,           ///< keeper: body = JobKey; node `rank` of this host, process `number`
    joined,         ///< the answer: body = JoinedBody, and the node's end of its channel
    refused,        ///< keeper: number = status; the line has been said
};

struct ControlHeader {
    ControlKind kind = ControlKind::attached;
    std::uint32_t rank = 0;
    std::uint64_t number = 0;
};

/// Body of ControlKind::race.
struct RaceBody {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint32_t writer = 0;
    std::uint32_t other = 0;
    std::uint32_t stack_of = 0;  ///< 1 + the thread of the job on whose stack it is
    SyncPlace place;             ///< where the writer synchronized
};

enum class CrashAccess : std::uint32_t { none, read, write, execute };

/// What a node knows of the memory at an address.
enum class CrashPlace : std::uint32_t {
    not_known,
    stack,         ///< of a thread of the job
    stack_guard,   ///< below it
    thread_guard,  ///< below the stack of a thread that the program made
    heap,
};

/// Body of ControlKind::crashed: a thread of the program is about to end its node.
struct CrashBody {
    static constexpr std::size_t registers_count = 17;
    static constexpr std::size_t stack_pointer = 7, instruction = 16;

    std::int32_t signal = 0;
    std::int32_t code = 0;  ///< si_code of its siginfo_t
    CrashAccess access = CrashAccess::none;
    CrashPlace place = CrashPlace::not_known;  ///< `address` lies there
    std::uint32_t place_node = 0;              ///< whose stack it is
    std::uint32_t place_thread = 0;            ///< and which of that node's threads'
    std::uint64_t thread = 0;                  ///< the kernel's number of the thread
    std::uint64_t address = 0;
    /// By DWARF's numbers (psABI x86-64, figure 3.36), at the instruction that failed.
    std::array<std::uint64_t, registers_count> registers{};
};

inline constexpr std::size_t packet_body_max = ControlChannel::gather_bytes_max;

/// A received packet; the descriptor (or -1) belongs to whoever holds the packet.
struct ControlPacket {
    ControlHeader header;
    std::vector<std::byte> body;
    int fd = -1;
    std::unique_ptr<std::byte[]> room;  ///< what receive_packet() takes the next one into
};

enum class Transfer : std::uint8_t {
    done,
    again,      ///< nothing was transferred; try later (only with `wait` false)
    closed,     ///< the other end is gone
    malformed,  ///< not a packet of ours (receive only); it was dropped
};

/// Sends one packet; `fd` is duplicated to the receiver. Async-signal-safe.
/// @param wait  false: returns `again` instead of blocking
Transfer send_packet(int socket, const ControlHeader& header, Bytes body, int fd,
                     bool wait) noexcept;

/// Receives one packet into `packet`, whose former descriptor is forgotten, not closed.
Transfer receive_packet(int socket, ControlPacket& packet, bool wait);

}  // namespace hiroba::net
