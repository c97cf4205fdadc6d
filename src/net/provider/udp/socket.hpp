// SPDX-License-Identifier: BSD-3-Clause
// Role: the node's one datagram socket, IPv4 or IPv6: batches out (sendmmsg, GSO), batches in
// (recvmmsg, GRO). Invariant: never blocks; what the system cannot take counts as lost on the way.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"

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

class Socket {
public:
    Socket() = default;
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket();

    /// Binds to a free port, on every address of the family.
    Result<void> open(std::uint16_t family);
    int fd() const noexcept { return fd_; }
    std::uint16_t port() const noexcept { return port_; }

    /// Largest datagram (without IP and UDP headers) that goes to `to` in one piece.
    static std::size_t path_bytes(const Address& to) noexcept;

    // --- sending: add() up to batch_max datagrams, then flush()
    // ------------------------------------

    static constexpr std::size_t batch_max = 64;
    bool full() const noexcept { return count_ == batch_max; }
    /// `datagram` is borrowed until flush().
    void add(const sockaddr_storage& to, socklen_t to_bytes, Bytes datagram) noexcept;
    /// Hands everything added to the system; consecutive ones of equal size as one (GSO).
    void flush() noexcept;

    // --- receiving -------------------------------------------------------------------------------

    static constexpr std::size_t receive_max = 8;
    static constexpr std::size_t buffer_bytes = 65536;
    /// Fetches what is there into the buffers; returns how many buffers were filled.
    std::size_t receive() noexcept;
    /// Of buffer `index`: all its bytes, and the size of each datagram in it but the last.
    MutableBytes received(std::size_t index, std::size_t& datagram_bytes) noexcept;

private:
    static constexpr std::size_t control_bytes = CMSG_SPACE(sizeof(int));
    struct Control {
        alignas(cmsghdr) std::byte bytes[control_bytes];
    };
    std::size_t group(std::size_t first, std::size_t& bytes) const noexcept;

    int fd_ = -1;
    std::uint16_t port_ = 0;
    bool segments_ = true;  ///< GSO works here
    bool several_ = false;  ///< the next receive() asks for several
    std::uint32_t in_a_row_ = 0;

    std::size_t count_ = 0;
    std::array<iovec, batch_max> pieces_;
    std::array<const sockaddr_storage*, batch_max> to_;
    std::array<socklen_t, batch_max> to_bytes_;
    std::array<mmsghdr, batch_max> out_;
    std::array<Control, batch_max> out_control_;

    std::byte* buffers_ = nullptr;
    std::array<iovec, receive_max> in_pieces_;
    std::array<mmsghdr, receive_max> in_;
    std::array<Control, receive_max> in_control_;
};

/// For system calls.
socklen_t to_sockaddr(const Address& address, sockaddr_storage& storage) noexcept;

}  // namespace hiroba::net::udp
