// SPDX-License-Identifier: BSD-3-Clause
// Role: one datagram with its descriptor, out and in. Sending is async-signal-safe.
#include "net/bootstrap/control_packet.hpp"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

namespace hiroba::net {

namespace {

/// Room for the ancillary data of one descriptor, aligned as the kernel wants it.
union DescriptorRoom {
    cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/// The descriptor that came with a message, or -1; any more than one are closed.
int take_descriptor(msghdr& message) {
    int taken = -1;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
            if (taken < 0)
                taken = fd;
            else
                ::close(fd);
        }
    }
    return taken;
}

}  // namespace

Transfer send_packet(int socket, const ControlHeader& header, Bytes body, int fd,
                     bool wait) noexcept {
    iovec parts[2] = {{const_cast<ControlHeader*>(&header), sizeof header},
                      {const_cast<std::byte*>(body.data()), body.size()}};
    DescriptorRoom room{};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = body.empty() ? 1 : 2;
    if (fd >= 0) {
        message.msg_control = room.bytes;
        message.msg_controllen = sizeof room.bytes;
        cmsghdr* const part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
    }
    for (;;) {
        if (::sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) >= 0)
            return Transfer::done;
        if (errno == EINTR) continue;
        // ETOOMANYREFS: too many descriptors are under way; their receivers will take them.
        if (!wait && (errno == EAGAIN || errno == ETOOMANYREFS || errno == ENOBUFS))
            return Transfer::again;
        return Transfer::closed;
    }
}

Transfer receive_packet(int socket, ControlPacket& packet, bool wait) {
    if (!packet.room) packet.room = std::make_unique_for_overwrite<std::byte[]>(packet_body_max);
    packet.fd = -1;
    iovec parts[2] = {{&packet.header, sizeof packet.header}, {packet.room.get(), packet_body_max}};
    DescriptorRoom room{};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    message.msg_control = room.bytes;
    message.msg_controllen = sizeof room.bytes;
    ssize_t bytes;
    do {
        bytes = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0) return errno == EAGAIN ? Transfer::again : Transfer::closed;
    if (bytes == 0) return Transfer::closed;
    const int fd = take_descriptor(message);
    const auto length = static_cast<std::size_t>(bytes);
    if (length < sizeof packet.header || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        if (fd >= 0) ::close(fd);
        packet.header = {};
        packet.body.clear();
        return Transfer::malformed;
    }
    packet.fd = fd;
    packet.body.assign(packet.room.get(), packet.room.get() + (length - sizeof packet.header));
    return Transfer::done;
}

}  // namespace hiroba::net
