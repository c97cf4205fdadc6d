// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/call_launcher.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.hpp"

namespace hiroba::tools {

namespace {

/// One address that is being tried.
struct Attempt {
    std::string address;
    int socket = -1;  ///< connecting; given to the link once connected
    std::optional<net::HostLink> link;
    std::string failed;

    int fd() const { return link ? link->fd() : socket; }
};

void begin(Attempt& attempt, std::uint16_t port) {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    wanted.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(attempt.address.c_str(), fmt::format("{}", port).c_str(), &wanted, &found)) {
        attempt.failed = "no numeric address";
        return;
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    attempt.socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (attempt.socket < 0 ||
        (::connect(attempt.socket, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS))
        attempt.failed = ::strerror(errno);
}

/// Moves an attempt on; true once the launcher has shown that it knows the key.
bool advance(Attempt& attempt, const StartupPacket& packet, short happened) {
    if (!attempt.link && happened != 0) {
        int error = 0;
        socklen_t bytes = sizeof error;
        ::getsockopt(attempt.socket, SOL_SOCKET, SO_ERROR, &error, &bytes);
        if (error != 0) {
            attempt.failed = ::strerror(error);
            return false;
        }
        attempt.link.emplace(attempt.socket,
                             net::wire::HashKey{packet.job.key, packet.job.key_high});
        attempt.socket = -1;
    }
    if (!attempt.link) return false;
    attempt.link->flush();
    const auto frame = attempt.link->receive();
    if (attempt.link->fd() < 0) attempt.failed = attempt.link->closed_why();
    return frame && frame->header.kind == net::HostKind::welcome;
}

std::list<Attempt> attempts_of(const StartupPacket& packet) {
    std::vector<std::string> addresses = packet.callers;
    // "client port server port": where ssh came from is where its answers go.
    if (const char* const from = ::getenv("SSH_CONNECTION")) {
        const std::string client(from, std::string_view(from).find_first_of(" %"));
        if (std::ranges::find(addresses, client) == addresses.end()) addresses.push_back(client);
    }
    std::list<Attempt> attempts;
    for (const std::string& address : addresses) {
        attempts.emplace_back();
        attempts.back().address = address;
        begin(attempts.back(), packet.port);
    }
    return attempts;
}

void close_failed(Attempt& attempt) {
    if (attempt.failed.empty()) return;
    if (attempt.socket >= 0) ::close(attempt.socket);
    attempt.socket = -1;
    attempt.link.reset();
}

Error nobody(const std::list<Attempt>& attempts, const StartupPacket& packet) {
    std::string tried;
    for (const Attempt& attempt : attempts)
        tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", attempt.address,
                             attempt.failed.empty() ? "no answer" : attempt.failed);
    return {ErrorKind::environment,
            fmt::format("the launcher cannot be reached at TCP port {} of {}. Let this host "
                        "connect to it",
                        packet.port, tried.empty() ? "any address" : tried)};
}

}  // namespace

Result<net::HostLink> call_launcher(const StartupPacket& packet, int limit_ms) {
    std::list<Attempt> attempts = attempts_of(packet);
    const std::uint64_t deadline = now_ns() + static_cast<std::uint64_t>(limit_ms) * 1'000'000;
    for (;;) {
        std::vector<pollfd> entries;
        for (Attempt& attempt : attempts) {
            close_failed(attempt);
            const short events = attempt.link ? attempt.link->events() : POLLOUT;
            entries.push_back({attempt.fd(), events, 0});
        }
        const std::uint64_t now = now_ns();
        const bool any = std::ranges::any_of(entries, [](const pollfd& e) { return e.fd >= 0; });
        if (!any || now >= deadline) break;
        ::poll(entries.data(), entries.size(), static_cast<int>((deadline - now) / 1'000'000 + 1));
        std::size_t i = 0;
        for (Attempt& attempt : attempts) {
            const pollfd& entry = entries[i++];
            if (entry.fd < 0 || !advance(attempt, packet, entry.revents)) continue;
            net::HostLink chosen = std::move(*attempt.link);
            for (Attempt& other : attempts)
                if (other.socket >= 0) ::close(other.socket);
            return chosen;
        }
    }
    Error error = nobody(attempts, packet);
    for (Attempt& attempt : attempts)
        if (attempt.socket >= 0) ::close(attempt.socket);
    return error;
}

}  // namespace hiroba::tools
