// SPDX-License-Identifier: BSD-3-Clause
// Role: the node's datagram socket, IPv4 or IPv6: batches out (sendmmsg, GSO), batches in
// (recvmmsg, GRO); and the ways to peers, connected sockets that only send: the system need not
// look for the route of each datagram, an eighth of the time of a datagram there and back.
// Invariant: never blocks; what the system cannot take counts as lost on the way.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "net/bootstrap/port_range.hpp"

namespace hiroba::net::udp {

/// Where a node's datagrams go. Plain bytes: part of the address card.
struct Address {
    std::uint8_t bytes[16] = {};  ///< IPv4 in the first four
    std::uint16_t port = 0;       ///< host order
    std::uint16_t family = 0;     ///< 4 or 6
    std::uint32_t scope = 0;      ///< of a link-local IPv6 address

    bool is_loopback() const noexcept;
};

/// The address that `network` (the setting HIROBA_NET) names: empty for the first suitable
/// interface, or an interface's name, or a numeric address of this host. Loopback, bridges and
/// virtual interfaces of containers are taken only when named, or when there is nothing else.
Result<Address> choose_address(std::string_view network);

/// How datagrams reach one peer. Plain values: whoever keeps it calls close().
struct Way {
    int fd = -1;  ///< connected; -1: there was none to be had, the node's socket sends
    sockaddr_storage name{};
    socklen_t name_bytes = 0;
    std::size_t datagram_bytes =
        0;                ///< largest (without IP and UDP headers) that goes in one piece
    bool shrunk = false;  ///< flush() found that the path takes less now, and measured it

    /// Always succeeds: without a descriptor, a route or a known size it does with less.
    static Way to(const Address& address) noexcept;
    /// Asks the system again how much goes in one piece.
    void measure() noexcept;
    void close() noexcept;
};

class Socket {
public:
    Socket() = default;
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket();

    /// Binds to a free port and the bell to the next: on `on`, or on every address of its family
    /// when its bytes are zero. Its port counts for nothing.
    Result<void> open(const Address& on);
    int fd() const noexcept { return fd_; }
    std::uint16_t port() const noexcept { return port_; }

    // --- the bell
    // ---------------------------------------------------------------------------------- Threads
    // that poll look at the socket only. The service thread, which sleeps while they do, watches
    // the bell: a peer that hears nothing sends a datagram there, and so finds out a poller that
    // went away to compute, at no cost while it polls.

    int bell_fd() const noexcept { return bell_fd_; }
    /// Sends at once; `way` is to the peer's socket. Its bell may be deaf: the datagram tells
    /// nothing that another does not.
    void ring(const Way& way, Bytes datagram) noexcept;
    /// Fetches one datagram from the bell into the first buffer; false when there is none.
    bool receive_bell() noexcept;

    // --- sending ---------------------------------------------------------------------------------

    static constexpr std::size_t batch_max = 64;
    /// Both are borrowed until flush(). Flushes first what goes another way, or batch_max of them.
    void add(Way& way, Bytes datagram) noexcept;
    /// Hands everything added to the system; consecutive ones of equal size as one (GSO), one by
    /// one where the path or the device refuses that.
    void flush() noexcept;

    // --- receiving -------------------------------------------------------------------------------

    static constexpr std::size_t receive_max = 8;
    static constexpr std::size_t buffer_bytes = 65536;
    /// Fetches what is there into the buffers; returns how many buffers were filled.
    std::size_t receive() noexcept;
    /// What came into buffer `index`: a datagram, or several that GRO joined.
    MutableBytes received(std::size_t index) noexcept {
        return {buffers_ + index * buffer_bytes, in_[index].msg_len};
    }

private:
    static constexpr std::size_t control_bytes = CMSG_SPACE(sizeof(int));
    struct Control {
        alignas(cmsghdr) std::byte bytes[control_bytes];
    };
    std::size_t group(std::size_t first) const noexcept;
    int send_one(std::size_t index) const noexcept;
    int send_ungrouped(const msghdr& group) noexcept;
    void prepare(msghdr& message, Control& control, std::size_t first,
                 std::size_t members) const noexcept;

    Result<void> bind_pair(const Address& on);
    Result<void> bind_within(const Address& on, const PortRange& range);

    int fd_ = -1;
    int bell_fd_ = -1;
    std::uint16_t port_ = 0;
    bool segments_ = true;  ///< GSO works here
    bool several_ = false;  ///< the next receive() asks for several
    std::uint32_t in_a_row_ = 0;

    std::size_t count_ = 0;
    Way* way_ = nullptr;  ///< of all that was added
    std::array<iovec, batch_max> pieces_;
    std::array<mmsghdr, batch_max> out_;
    std::array<Control, batch_max> out_control_;

    std::byte* buffers_ = nullptr;
    std::array<iovec, receive_max> in_pieces_;
    std::array<mmsghdr, receive_max> in_;
};

/// For system calls.
socklen_t to_sockaddr(const Address& address, sockaddr_storage& storage) noexcept;

}  // namespace hiroba::net::udp
