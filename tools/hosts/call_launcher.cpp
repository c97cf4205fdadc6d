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

/// An address that is earlier in the order may answer this much later.
constexpr std::uint64_t head_start_ns = 500'000'000;

/// One address that is being tried.
struct Attempt {
    std::string address;
    int socket = -1;  ///< connecting; given to the link once connected
    std::optional<net::HostLink> link;
    bool welcome = false;  ///< the launcher has shown that it knows the key
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

void advance(Attempt& attempt, const StartupPacket& packet, short happened) {
    if (!attempt.link && happened != 0) {
        int error = 0;
        socklen_t bytes = sizeof error;
        ::getsockopt(attempt.socket, SOL_SOCKET, SO_ERROR, &error, &bytes);
        if (error != 0) {
            attempt.failed = ::strerror(error);
            return;
        }
        attempt.link.emplace(attempt.socket,
                             net::wire::HashKey{packet.job.key, packet.job.key_high});
        attempt.socket = -1;
    }
    if (!attempt.link) return;
    attempt.link->flush();
    const auto frame = attempt.link->receive();
    if (attempt.link->fd() < 0) attempt.failed = attempt.link->closed_why();
    if (frame && frame->header.kind == net::HostKind::welcome) attempt.welcome = true;
}

/// The first in order that is welcome, unless an earlier one may still become so.
Attempt* chosen_of(std::list<Attempt>& attempts, bool waits_for_earlier) {
    for (Attempt& attempt : attempts) {
        if (!attempt.failed.empty()) continue;
        if (attempt.welcome) return &attempt;
        if (waits_for_earlier) return nullptr;
    }
    return nullptr;
}

std::list<Attempt> attempts_of(const StartupPacket& packet) {
    std::vector<std::string> addresses = packet.callers;
    // "client port server port": where ssh came from is where its answers go. What is none of the
    // launcher's addresses is a translated one, or left over from another login: it comes last.
    if (const char* const from = ::getenv("SSH_CONNECTION")) {
        const std::string client(from, std::string_view(from).find_first_of(" %"));
        const auto known = std::ranges::find(addresses, client);
        if (known == addresses.end())
            addresses.push_back(client);
        else
            std::rotate(addresses.begin(), known, known + 1);
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

void close_all(std::list<Attempt>& attempts) {
    for (Attempt& attempt : attempts)
        if (attempt.socket >= 0) ::close(attempt.socket);
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
    std::uint64_t deadline = now_ns() + static_cast<std::uint64_t>(limit_ms) * 1'000'000;
    bool any_welcome = false;
    for (;;) {
        std::vector<pollfd> entries;
        for (Attempt& attempt : attempts) {
            close_failed(attempt);
            const short events = attempt.link ? attempt.link->events() : POLLOUT;
            entries.push_back({attempt.fd(), events, 0});
        }
        const std::uint64_t now = now_ns();
        const bool any = std::ranges::any_of(entries, [](const pollfd& e) { return e.fd >= 0; });
        if (Attempt* const chosen = chosen_of(attempts, now < deadline)) {
            net::HostLink link = std::move(*chosen->link);
            close_all(attempts);
            return link;
        }
        if (!any || now >= deadline) break;
        ::poll(entries.data(), entries.size(), static_cast<int>((deadline - now) / 1'000'000 + 1));
        std::size_t i = 0;
        for (Attempt& attempt : attempts) {
            const pollfd& entry = entries[i++];
            if (entry.fd < 0) continue;
            advance(attempt, packet, entry.revents);
            if (!attempt.welcome || any_welcome) continue;
            any_welcome = true;
            deadline = std::min(deadline, now_ns() + head_start_ns);
        }
    }
    Error error = nobody(attempts, packet);
    close_all(attempts);
    return error;
}

}  // namespace hiroba::tools
