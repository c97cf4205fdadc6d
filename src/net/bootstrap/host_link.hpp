// SPDX-License-Identifier: BSD-3-Clause
// Role: the connection between the launcher and its agent on another host: authenticated frames
// over TCP. Both ends are of one build, which the agent has compared before it connects.
// Invariant: each end sends a number drawn at random; a frame's tag is a keyed hash over its place
// in the stream, its header and its body, with a key of that direction and these two numbers. So
// a peer without the job's key is never listened to, and nothing recorded can be played again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "net/bootstrap/control_packet.hpp"
#include "net/wire/siphash.hpp"

namespace hiroba::net {

enum class HostKind : std::uint32_t {
    welcome = 1,   ///< launcher: knows the key; the agent may stay with this connection
    hello,         ///< agent: number = position of its host in the job; body = HelloBody
    peers,         ///< launcher: number = threads of a node; body = addresses, one a line
    ready,         ///< agent: body = the chosen device's name and address, a line each
    refused,       ///< agent: number = exit status; body = why this host is unfit
    go,            ///< launcher: start the nodes
    started,       ///< agent: body = process number of each of its nodes, uint32
    packet,        ///< agent: a node's control packet: body = ControlHeader, then its body
    malformed,     ///< agent: `rank` wrote something else to its control channel
    ended,         ///< agent: `rank` ended; number = its wait status, + host_ended_untold
    stopped,       ///< agent: `rank` was stopped; number = its wait status
    wants_stacks,  ///< agent: the program has no use for SIGUSR1
    used,          ///< agent: number = processor time of its nodes, in ns
    answer,        ///< launcher: for every node of the host: body = ControlHeader, then its body
    signal,        ///< launcher: send signal `number` to `rank`
    user_signal,   ///< launcher: SIGUSR1 for `rank`, if its program has a use for it
    stacks,        ///< launcher: print the stacks of the host's nodes
    ask_used,      ///< launcher: how much processor time the host's nodes have used
    waits,         ///< launcher: say in which calls the host's threads wait
    end,           ///< launcher: kill what still runs and leave
};

/// Added to a wait status that is made up: the node's own went to whoever read its stack.
inline constexpr std::uint64_t host_ended_untold = std::uint64_t{1} << 32;

struct HostHeader {
    HostKind kind = HostKind::end;
    std::uint32_t rank = 0;
    std::uint64_t number = 0;
};

/// Body of HostKind::hello.
struct HelloBody {
    std::uint64_t host = 0;   ///< this_host() of the agent
    std::uint64_t cores = 0;  ///< that its nodes may use
};

struct HostFrame {
    HostHeader header;
    std::vector<std::byte> body;
};

/// One end of the connection. Owns its socket. Thread: one, any. Never blocks.
class HostLink {
public:
    static constexpr std::size_t body_bytes_max = packet_body_max + sizeof(ControlHeader);
    /// The longest body of a peer that has not yet shown that it knows the key.
    static constexpr std::size_t first_body_bytes_max = 1024;

    /// Sends this end's number. `socket` is a connected stream socket; it is made non-blocking.
    HostLink(int socket, wire::HashKey key);
    HostLink(HostLink&& other) noexcept;
    HostLink& operator=(HostLink&&) = delete;
    ~HostLink();

    int fd() const { return socket_; }  ///< -1 once closed
    /// POLLIN, and POLLOUT while something waits to be sent.
    short events() const;
    /// The peer's number has come: from here on frames can be sent.
    bool met() const { return met_; }
    /// Something of the peer had the right tag.
    bool authentic() const { return received_ > 0; }
    /// Bytes that the network has not taken yet.
    std::size_t unsent_bytes() const { return out_.size() - out_sent_; }
    /// Why the connection is closed; empty while it is open.
    const std::string& closed_why() const { return closed_why_; }
    /// The peer's numeric address.
    std::string peer_address() const;
    /// Numeric address under which the peer reaches this side.
    std::string own_address() const;

    /// Queues a frame and sends what can be sent; nothing once closed.
    void send(const HostHeader& header, Bytes body = {});
    /// Sends what waits.
    void flush();
    /// The next frame that has come whole; a wrong tag or size closes the connection.
    std::optional<HostFrame> receive();
    void close(const std::string& why);

private:
    void take_in();
    void take_number();
    std::span<std::byte> next_frame();

    int socket_;
    wire::HashKey key_, out_key_, in_key_;
    std::uint64_t drawn_ = 0;
    bool met_ = false, at_end_ = false;
    std::uint64_t sent_ = 0, received_ = 0;  ///< frames
    std::vector<std::byte> out_, in_;
    std::size_t out_sent_ = 0, in_taken_ = 0;
    std::string closed_why_;
};

/// Has the kernel break a connection whose other host is silent for `seconds`; 0: never.
void limit_silence(int socket, std::uint64_t seconds) noexcept;

}  // namespace hiroba::net
