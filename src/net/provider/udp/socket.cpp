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
#include <utility>

#include "base/own_descriptors.hpp"
#include "base/settings.hpp"

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

/// Large buffers where we may have them; without, more is lost and sent again.
void enlarge(int fd, int forced, int plain) noexcept {
    const int wish = buffer_wish_bytes;
    if (setsockopt(fd, SOL_SOCKET, forced, &wish, sizeof wish) != 0) {
        setsockopt(fd, SOL_SOCKET, plain, &wish, sizeof wish);
    }
}

/// A datagram socket bound to `port` of `on` (0: any free one, which is then stored there), or -1.
int bound(Address on, std::uint16_t& port) noexcept {
    const std::uint16_t family = on.family;
    const int fd = keep_descriptor(
        socket(family == 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0) return -1;
    on.port = port;
    sockaddr_storage name{};
    socklen_t name_bytes = to_sockaddr(on, name);
    auto* const plain = reinterpret_cast<sockaddr*>(&name);
    if (bind(fd, plain, name_bytes) != 0 || getsockname(fd, plain, &name_bytes) != 0) {
        const int saved_errno = errno;
        close_kept_descriptor(fd);
        errno = saved_errno;
        return -1;
    }
    port = ntohs(family == 6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                             : reinterpret_cast<sockaddr_in&>(name).sin_port);
    return fd;
}

}  // namespace

Socket::~Socket() {
    if (fd_ >= 0) close_kept_descriptor(fd_);
    if (bell_fd_ >= 0) close_kept_descriptor(bell_fd_);
    if (buffers_ != nullptr) munmap(buffers_, receive_max * buffer_bytes);
}

/// Binds two ports in a row. Tries the next pair where another process has one of them.
Result<void> Socket::bind_pair(const Address& on) {
    const auto range = port_range(setting("HIROBA_PORTS"));
    if (!range) return range.error();
    if (!range->any()) return bind_within(on, *range);
    constexpr int tries_max = 64;
    for (int i = 0; i < tries_max; ++i) {
        port_ = 0;
        fd_ = bound(on, port_);
        if (fd_ < 0) return failed("a socket", "; see ulimit -n and net.ipv4.ip_local_port_range");
        auto bell_port = static_cast<std::uint16_t>(port_ + 1);
        if (bell_port != 0) bell_fd_ = bound(on, bell_port);
        if (bell_fd_ >= 0) return {};
        const int saved_errno = errno;
        close_kept_descriptor(std::exchange(fd_, -1));
        errno = saved_errno;
    }
    return failed("two ports one behind the other", "; see net.ipv4.ip_local_port_range");
}

/// The first two that are free, one behind the other.
Result<void> Socket::bind_within(const Address& on, const PortRange& range) {
    for (std::uint32_t first = range.first; first < range.last; first += 2) {
        port_ = static_cast<std::uint16_t>(first);
        auto bell_port = static_cast<std::uint16_t>(first + 1);
        fd_ = bound(on, port_);
        if (fd_ >= 0) bell_fd_ = bound(on, bell_port);
        if (bell_fd_ >= 0) return {};
        if (fd_ >= 0) close_kept_descriptor(std::exchange(fd_, -1));
    }
    return Error{ErrorKind::environment,
                 "provider udp: no two ports are free in HIROBA_PORTS=" +
                     std::string(setting("HIROBA_PORTS")) +
                     "; each node of a host needs two, the launcher one more"};
}

Result<void> Socket::open(const Address& on) {
    if (auto pair = bind_pair(on); !pair) return pair;
    enlarge(fd_, SO_RCVBUFFORCE, SO_RCVBUF);
    enlarge(fd_, SO_SNDBUFFORCE, SO_SNDBUF);
    const int yes = 1;
    setsockopt(fd_, SOL_UDP, UDP_GRO, &yes, sizeof yes);

    void* const memory = mmap(nullptr, receive_max * buffer_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return failed("receive buffers", "; see ulimit -v");
    buffers_ = static_cast<std::byte*>(memory);
    return {};
}

// --- ways ----------------------------------------------------------------------------------------

Way Way::to(const Address& address) noexcept {
    Way way;
    way.name_bytes = to_sockaddr(address, way.name);
    way.fd = keep_new_descriptor([&way] {
        return socket(way.name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    });
    if (way.fd >= 0 &&
        connect(way.fd, reinterpret_cast<sockaddr*>(&way.name), way.name_bytes) != 0) {
        way.close();
    }
    if (way.fd >= 0) enlarge(way.fd, SO_SNDBUFFORCE, SO_SNDBUF);
    way.measure();
    return way;
}

void Way::measure() noexcept {
    constexpr int headers = 48;  // IPv6 and UDP
    constexpr int mtu_min = 576, mtu_unknown = 1280;
    int mtu = mtu_unknown;
    socklen_t mtu_bytes = sizeof mtu;
    const bool six = name.ss_family == AF_INET6;
    if (fd >= 0)
        getsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_MTU : IP_MTU, &mtu, &mtu_bytes);
    datagram_bytes = static_cast<std::size_t>(std::max(mtu, mtu_min) - headers);
}

void Way::close() noexcept {
    if (fd >= 0) close_kept_descriptor(fd);
    fd = -1;
}

// --- sending -------------------------------------------------------------------------------------

void Socket::add(Way& way, Bytes datagram) noexcept {
    if (count_ == batch_max || (count_ != 0 && way_ != &way)) flush();
    way_ = &way;
    pieces_[count_++] = {const_cast<std::byte*>(datagram.data()), datagram.size()};
}

/// How many datagrams from `first` on may go as one: equal ones, the last may be shorter.
std::size_t Socket::group(std::size_t first) const noexcept {
    const std::size_t each = pieces_[first].iov_len;
    std::size_t end = first + 1, bytes = each;
    const bool may = segments_ && each <= way_->datagram_bytes;
    while (may && end < count_ && pieces_[end].iov_len <= each &&
           bytes + pieces_[end].iov_len <= group_bytes_max) {
        bytes += pieces_[end].iov_len;
        if (pieces_[end++].iov_len < each) break;
    }
    return end - first;
}

void Socket::prepare(msghdr& message, Control& control, std::size_t first,
                     std::size_t members) const noexcept {
    message = {};
    if (way_->fd < 0) {
        message.msg_name = const_cast<sockaddr_storage*>(&way_->name);
        message.msg_namelen = way_->name_bytes;
    }
    message.msg_iov = const_cast<iovec*>(&pieces_[first]);
    message.msg_iovlen = members;
    if (members == 1) return;
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(std::uint16_t));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto each = static_cast<std::uint16_t>(pieces_[first].iov_len);
    memcpy(CMSG_DATA(header), &each, sizeof each);
}

int Socket::send_one(std::size_t index) const noexcept {
    const bool connected = way_->fd >= 0;
    const ssize_t sent =
        sendto(connected ? way_->fd : fd_, pieces_[index].iov_base, pieces_[index].iov_len, 0,
               connected ? nullptr : reinterpret_cast<const sockaddr*>(&way_->name),
               connected ? 0 : way_->name_bytes);
    return sent >= 0 ? 0 : errno;
}

/// A group that was refused: the path takes less than its members (EMSGSIZE, in older kernels
/// EINVAL), or there is no GSO here. A lone datagram that is too large the system takes to pieces.
int Socket::send_ungrouped(const msghdr& group) noexcept {
    const auto first = static_cast<std::size_t>(group.msg_iov - pieces_.data());
    const std::size_t before = way_->datagram_bytes;
    way_->measure();
    if (pieces_[first].iov_len > way_->datagram_bytes)
        way_->shrunk = way_->shrunk || way_->datagram_bytes < before;
    else
        segments_ = false;
    int failure = 0;
    for (std::size_t i = first; i < first + group.msg_iovlen; ++i) {
        failure = send_one(i);
        if (failure == EAGAIN || failure == ENOBUFS) break;
    }
    return failure;
}

void Socket::flush() noexcept {
    if (count_ == 0) return;
    in_a_row_ = 0;  // who is answered in between does not stream
    const int saved_errno = errno;
    const int fd = way_->fd >= 0 ? way_->fd : fd_;
    if (count_ == 1) {
        // Most calls; a lone datagram needs no header. Lost if there is no room, as below.
        send_one(0);
        count_ = 0;
        errno = saved_errno;
        return;
    }
    std::size_t groups = 0;
    for (std::size_t first = 0; first < count_; ++groups) {
        const std::size_t members = group(first);
        prepare(out_[groups].msg_hdr, out_control_[groups], first, members);
        first += members;
    }
    for (std::size_t done = 0; done < groups;) {
        const int sent = groups == 1
                             ? static_cast<int>(sendmsg(fd, &out_[0].msg_hdr, 0) >= 0)
                             : sendmmsg(fd, &out_[done], static_cast<unsigned>(groups - done), 0);
        if (sent > 0) {
            done += static_cast<std::size_t>(sent);
            continue;
        }
        if (out_[done].msg_hdr.msg_iovlen > 1 &&
            (errno == EIO || errno == EINVAL || errno == EMSGSIZE))
            errno = send_ungrouped(out_[done].msg_hdr);
        if (errno == EAGAIN || errno == ENOBUFS) break;  // no room: the rest is lost
        ++done;                                          // unreachable, say: this one is lost
    }
    count_ = 0;
    errno = saved_errno;
}

void Socket::ring(const Way& way, Bytes datagram) noexcept {
    sockaddr_storage name = way.name;
    in_port_t& port = name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                                 : reinterpret_cast<sockaddr_in&>(name).sin_port;
    port = htons(static_cast<std::uint16_t>(ntohs(port) + 1));
    const int saved_errno = errno;
    sendto(fd_, datagram.data(), datagram.size(), 0, reinterpret_cast<const sockaddr*>(&name),
           way.name_bytes);
    errno = saved_errno;
}

bool Socket::receive_bell() noexcept {
    const int saved_errno = errno;
    const ssize_t bytes = recv(bell_fd_, buffers_, buffer_bytes, MSG_DONTWAIT);
    errno = saved_errno;
    in_[0].msg_len = static_cast<unsigned>(std::max<ssize_t>(bytes, 0));
    return bytes >= 0;
}

// --- receiving -----------------------------------------------------------------------------------

// No ancillary data: that several datagrams were joined is seen from the lengths they carry
// (wire::joined_bytes()), and a lone one comes by the shortest call there is.
std::size_t Socket::receive() noexcept {
    const int saved_errno = errno;
    int count = 0;
    if (several_) {
        for (std::size_t i = 0; i < receive_max; ++i) {
            in_pieces_[i] = {buffers_ + i * buffer_bytes, buffer_bytes};
            in_[i].msg_hdr = {};
            in_[i].msg_hdr.msg_iov = &in_pieces_[i];
            in_[i].msg_hdr.msg_iovlen = 1;
        }
        count = recvmmsg(fd_, in_.data(), receive_max, MSG_DONTWAIT, nullptr);
    } else {
        const ssize_t bytes = recv(fd_, buffers_, buffer_bytes, MSG_DONTWAIT);
        in_[0].msg_len = static_cast<unsigned>(std::max<ssize_t>(bytes, 0));
        count = bytes >= 0;
    }
    errno = saved_errno;
    // Asking for several costs a second look into the queue; large ones are better used while they
    // are in the cache.
    in_a_row_ = count > 0 ? in_a_row_ + 1 : 0;
    several_ = count > 1 || (in_a_row_ > lone_max && count == 1 && !several_);
    if (count > 0 && in_[0].msg_len > large_bytes) several_ = false;
    return count > 0 ? static_cast<std::size_t>(count) : 0;
}

}  // namespace hiroba::net::udp
