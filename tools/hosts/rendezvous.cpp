// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/rendezvous.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/settings.hpp"
#include "net/bootstrap/device.hpp"
#include "net/bootstrap/port_range.hpp"

namespace hiroba::tools {

namespace {

/// A listening socket of one family, or -1 with errno.
int listen_on(int family, std::uint16_t& port) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) return -1;
    const int off = 0;
    if (family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_storage name{};
    name.ss_family = static_cast<sa_family_t>(family);
    socklen_t bytes = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    // The port lies at one place in both families' addresses.
    reinterpret_cast<sockaddr_in&>(name).sin_port = htons(port);
    if (::bind(socket, generic, bytes) == 0 && ::listen(socket, SOMAXCONN) == 0 &&
        ::getsockname(socket, generic, &bytes) == 0) {
        port = ntohs(reinterpret_cast<sockaddr_in&>(name).sin_port);
        return socket;
    }
    const int error = errno;
    ::close(socket);
    errno = error;
    return -1;
}

}  // namespace

Result<Rendezvous> Rendezvous::open(net::wire::HashKey key) {
    const auto range = net::port_range(setting("HIROBA_PORTS"));
    if (!range) return range.error();
    std::uint16_t port = 0;
    int socket = -1;
    // From the end: nodes of this host begin at the start.
    for (std::uint32_t wanted = range->last; socket < 0 && wanted >= range->first; --wanted) {
        port = static_cast<std::uint16_t>(wanted);
        socket = listen_on(AF_INET6, port);
        if (socket < 0) socket = listen_on(AF_INET, port);
        if (range->any()) break;
    }
    if (socket < 0 && !range->any())
        return Error{ErrorKind::environment,
                     fmt::format("no port is free in HIROBA_PORTS={}: {}. Give more",
                                 setting("HIROBA_PORTS"), ::strerror(errno))};
    if (socket < 0)
        return Error{ErrorKind::environment,
                     fmt::format("cannot listen for the agents of other hosts: {}. Allow TCP "
                                 "sockets here",
                                 ::strerror(errno))};
    return Rendezvous(socket, port, key);
}

Rendezvous::Rendezvous(Rendezvous&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      port_(other.port_),
      key_(other.key_),
      strangers_(std::move(other.strangers_)) {}

void Rendezvous::close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
    strangers_.clear();
}

void Rendezvous::add_poll_entries(std::vector<pollfd>& entries) const {
    if (strangers_.size() < strangers_max) entries.push_back({socket_, POLLIN, 0});
    for (const Stranger& stranger : strangers_)
        entries.push_back({stranger.link.fd(), stranger.link.events(), 0});
}

void Rendezvous::accept_all(std::uint64_t now_ns) {
    while (socket_ >= 0 && strangers_.size() < strangers_max) {
        const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (socket < 0) return;
        strangers_.push_back({net::HostLink(socket, key_), now_ns});
    }
}

std::list<Arrival> Rendezvous::serve(std::uint64_t now_ns) {
    std::list<Arrival> arrivals;
    accept_all(now_ns);
    for (Stranger& stranger : strangers_) {
        stranger.link.flush();
        const auto frame = stranger.link.receive();
        if (stranger.link.met() && !stranger.welcomed) {
            stranger.link.send({net::HostKind::welcome, 0, 0});
            stranger.welcomed = true;
        }
        net::HelloBody hello;
        if (frame && frame->header.kind == net::HostKind::hello &&
            frame->body.size() == sizeof hello) {
            std::memcpy(&hello, frame->body.data(), sizeof hello);
            arrivals.push_back({std::move(stranger.link), frame->header.number, hello});
        } else if (frame || now_ns - stranger.since_ns > stranger_limit_ns) {
            stranger.link.close("a stranger");
        }
    }
    strangers_.remove_if([](const Stranger& stranger) { return stranger.link.fd() < 0; });
    return arrivals;
}

std::vector<std::string> reachable_addresses() {
    std::vector<std::string> plain, bridges, own;
    for (const net::NetworkDevice& device : net::network_devices()) {
        // A link-local address means nothing without a device of the other host.
        if (!device.up || device.address.starts_with("fe80:")) continue;
        auto& list = device.loopback ? own : device.bridge ? bridges : plain;
        if (std::ranges::find(list, device.address) == list.end()) list.push_back(device.address);
    }
    plain.insert(plain.end(), bridges.begin(), bridges.end());
    return plain.empty() ? own : plain;
}

}  // namespace hiroba::tools
