// SPDX-License-Identifier: BSD-3-Clause
// Role: see socket.hpp; sending and receiving. Choosing an address: address.cpp.
#include "net/provider/udp/socket.hpp"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace hiroba::net::udp {
namespace {

constexpr int buffer_wish_bytes = 8 << 20;
constexpr std::uint32_t lone_max = 4;  // found in a row, before several are asked for at once
constexpr unsigned large_bytes = 8192;
constexpr std::size_t group_bytes_max = 65480;  // one datagram's worth, as the kernel sees it

Error failed(const char* what, const char* advice) {
    return {ErrorKind::environment,
            std::string("provider udp: ") + what + ": " + strerror(errno) + advice};
}

}  // namespace

Socket::~Socket() {
    if (fd_ >= 0) close(fd_);
    if (buffers_ != nullptr) munmap(buffers_, receive_max * buffer_bytes);
}

Result<void> Socket::open(std::uint16_t family) {
    const int domain = family == 6 ? AF_INET6 : AF_INET;
    fd_ = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) return failed("socket", "; see ulimit -n");
    sockaddr_storage name{};
    name.ss_family = static_cast<sa_family_t>(domain);  // any address, any port
    socklen_t name_bytes = family == 6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (bind(fd_, reinterpret_cast<sockaddr*>(&name), name_bytes) != 0) {
        return failed("bind to a free port", "; see net.ipv4.ip_local_port_range");
    }
    if (getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &name_bytes) != 0) {
        return failed("getsockname", "");
    }
    port_ = ntohs(family == 6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                              : reinterpret_cast<sockaddr_in&>(name).sin_port);

    // Large buffers where we may; without them more is lost and sent again.
    const int wish = buffer_wish_bytes;
    for (const auto& [forced, plain] :
         {std::pair{SO_RCVBUFFORCE, SO_RCVBUF}, {SO_SNDBUFFORCE, SO_SNDBUF}}) {
        if (setsockopt(fd_, SOL_SOCKET, forced, &wish, sizeof wish) != 0) {
            setsockopt(fd_, SOL_SOCKET, plain, &wish, sizeof wish);
        }
    }
    const int on = 1;
    setsockopt(fd_, SOL_UDP, UDP_GRO, &on, sizeof on);

    void* const memory = mmap(nullptr, receive_max * buffer_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return failed("receive buffers", "; see ulimit -v");
    buffers_ = static_cast<std::byte*>(memory);
    return {};
}

std::size_t Socket::path_bytes(const Address& to) noexcept {
    constexpr std::size_t headers = 48;  // IPv6 and UDP
    sockaddr_storage name{};
    const socklen_t name_bytes = to_sockaddr(to, name);
    int mtu = 1280;
    const int probe = socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe >= 0) {
        socklen_t mtu_bytes = sizeof mtu;
        if (connect(probe, reinterpret_cast<sockaddr*>(&name), name_bytes) != 0 ||
            getsockopt(probe, to.family == 6 ? IPPROTO_IPV6 : IPPROTO_IP,
                       to.family == 6 ? IPV6_MTU : IP_MTU, &mtu, &mtu_bytes) != 0) {
            mtu = 1280;
        }
        close(probe);
    }
    return static_cast<std::size_t>(std::max(mtu, 576)) - headers;
}

// --- sending -------------------------------------------------------------------------------------

void Socket::add(const sockaddr_storage& to, socklen_t to_bytes, Bytes datagram) noexcept {
    pieces_[count_] = {const_cast<std::byte*>(datagram.data()), datagram.size()};
    to_[count_] = &to;
    to_bytes_[count_++] = to_bytes;
}

/// How many datagrams from `first` on may go as one: equal ones to one place, the last may be
/// shorter.
std::size_t Socket::group(std::size_t first, std::size_t& bytes) const noexcept {
    const std::size_t each = pieces_[first].iov_len;
    std::size_t end = first + 1;
    bytes = each;
    while (segments_ && end < count_ && to_[end] == to_[first] && pieces_[end].iov_len <= each &&
           bytes + pieces_[end].iov_len <= group_bytes_max) {
        bytes += pieces_[end].iov_len;
        if (pieces_[end++].iov_len < each) break;
    }
    return end - first;
}

void Socket::flush() noexcept {
    const int saved_errno = errno;
    if (count_ == 1) {
        // Most calls; a lone datagram needs no header. Lost if there is no room, as below.
        sendto(fd_, pieces_[0].iov_base, pieces_[0].iov_len, 0,
               reinterpret_cast<const sockaddr*>(to_[0]), to_bytes_[0]);
        count_ = 0;
        errno = saved_errno;
        return;
    }
    std::size_t groups = 0;
    for (std::size_t first = 0; first < count_;) {
        std::size_t bytes = 0;
        const std::size_t members = group(first, bytes);
        msghdr& message = out_[groups].msg_hdr;
        message = {};
        message.msg_name = const_cast<sockaddr_storage*>(to_[first]);
        message.msg_namelen = to_bytes_[first];
        message.msg_iov = &pieces_[first];
        message.msg_iovlen = members;
        if (members > 1) {
            message.msg_control = out_control_[groups].bytes;
            message.msg_controllen = CMSG_SPACE(sizeof(std::uint16_t));
            cmsghdr* const header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_UDP;
            header->cmsg_type = UDP_SEGMENT;
            header->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
            const auto each = static_cast<std::uint16_t>(pieces_[first].iov_len);
            memcpy(CMSG_DATA(header), &each, sizeof each);
        }
        ++groups;
        first += members;
    }
    for (std::size_t done = 0; done < groups;) {
        const int sent = groups == 1
                             ? static_cast<int>(sendmsg(fd_, &out_[0].msg_hdr, 0) >= 0)
                             : sendmmsg(fd_, &out_[done], static_cast<unsigned>(groups - done), 0);
        if (sent > 0) {
            done += static_cast<std::size_t>(sent);
            continue;
        }
        // A device without GSO: what was meant to go at once is lost, later ones go one by one.
        if (out_[done].msg_hdr.msg_iovlen > 1 && (errno == EIO || errno == EINVAL))
            segments_ = false;
        if (errno == EAGAIN || errno == ENOBUFS) break;  // no room: the rest is lost
        ++done;                                          // unreachable, say: this one is lost
    }
    count_ = 0;
    errno = saved_errno;
}

// --- receiving -----------------------------------------------------------------------------------

std::size_t Socket::receive() noexcept {
    // Asking for several costs a second look into the queue; large ones are better used while they
    // are in the cache.
    const std::size_t wanted = several_ ? receive_max : 1;
    for (std::size_t i = 0; i < wanted; ++i) {
        in_pieces_[i] = {buffers_ + i * buffer_bytes, buffer_bytes};
        msghdr& message = in_[i].msg_hdr;
        message = {};
        message.msg_iov = &in_pieces_[i];
        message.msg_iovlen = 1;
        message.msg_control = in_control_[i].bytes;
        message.msg_controllen = control_bytes;
    }
    const int saved_errno = errno;
    int count = 0;
    if (several_) {
        count = recvmmsg(fd_, in_.data(), receive_max, MSG_DONTWAIT, nullptr);
    } else {
        const ssize_t bytes = recvmsg(fd_, &in_[0].msg_hdr, MSG_DONTWAIT);
        in_[0].msg_len = static_cast<unsigned>(std::max<ssize_t>(bytes, 0));
        count = bytes >= 0;
    }
    errno = saved_errno;
    in_a_row_ = count > 0 ? in_a_row_ + 1 : 0;
    several_ = count > 1 || (in_a_row_ > lone_max && count == 1 && !several_);
    if (count > 0 && in_[0].msg_len > large_bytes) several_ = false;
    return count > 0 ? static_cast<std::size_t>(count) : 0;
}

MutableBytes Socket::received(std::size_t index, std::size_t& datagram_bytes) noexcept {
    const MutableBytes all{buffers_ + index * buffer_bytes, in_[index].msg_len};
    datagram_bytes = std::max<std::size_t>(all.size(), 1);
    msghdr& message = in_[index].msg_hdr;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_UDP || header->cmsg_type != UDP_GRO) continue;
        int each = 0;
        memcpy(&each, CMSG_DATA(header), sizeof each);
        if (each > 0) datagram_bytes = static_cast<std::size_t>(each);
    }
    return all;
}

}  // namespace hiroba::net::udp
