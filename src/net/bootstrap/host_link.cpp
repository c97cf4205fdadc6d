// SPDX-License-Identifier: BSD-3-Clause
// Role: see host_link.hpp. On the wire: a greeting, then frames of tag, size, kind, rank, number
// and body. Where the tag stands, the hash sees the frame's place in the stream.
#include "net/bootstrap/host_link.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/fatal.hpp"
#include "net/wire/authenticator.hpp"

namespace hiroba::net {

namespace {

constexpr std::uint64_t greeting_magic = 0x3130'6162'6f72'6968;  // "hiroba01"

struct Greeting {
    std::uint64_t magic = greeting_magic;
    std::uint64_t drawn = 0;
};

struct FrameHead {
    std::uint64_t tag = 0;
    std::uint32_t body_bytes = 0;
    HostKind kind = HostKind::end;
    std::uint32_t rank = 0;
    std::uint32_t reserved = 0;
    std::uint64_t number = 0;
};
static_assert(sizeof(FrameHead) == 32, "no padding is sent");

void append(std::vector<std::byte>& to, Bytes bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

template <class T>
Bytes bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

/// The hash of the frame that starts at `frame`, with its place where the tag stands.
std::uint64_t tag_of(const wire::HashKey& key, std::span<std::byte> frame, std::uint64_t place) {
    std::memcpy(frame.data(), &place, sizeof place);
    return wire::siphash(key, frame);
}

}  // namespace

HostLink::HostLink(int socket, wire::HashKey key) : socket_(socket), key_(key) {
    ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::getrandom(&drawn_, sizeof drawn_, 0) != sizeof drawn_) {
        close(std::string("getrandom: ") + std::strerror(errno));
        return;
    }
    append(out_, bytes_of(Greeting{greeting_magic, drawn_}));
    flush();
}

HostLink::HostLink(HostLink&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      key_(other.key_),
      out_key_(other.out_key_),
      in_key_(other.in_key_),
      drawn_(other.drawn_),
      met_(other.met_),
      at_end_(other.at_end_),
      sent_(other.sent_),
      received_(other.received_),
      out_(std::move(other.out_)),
      in_(std::move(other.in_)),
      out_sent_(other.out_sent_),
      in_taken_(other.in_taken_),
      closed_why_(std::move(other.closed_why_)) {}

HostLink::~HostLink() {
    if (socket_ >= 0) ::close(socket_);
}

short HostLink::events() const { return unsent_bytes() > 0 ? POLLIN | POLLOUT : POLLIN; }

namespace {

/// Numeric; an IPv4 address is written as such however the socket sees it.
std::string text_of(const sockaddr_storage& name, socklen_t bytes) {
    char text[NI_MAXHOST] = {};
    const auto& six = reinterpret_cast<const sockaddr_in6&>(name);
    if (name.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
        ::inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, sizeof text);
        return text;
    }
    if (::getnameinfo(reinterpret_cast<const sockaddr*>(&name), bytes, text, sizeof text, nullptr,
                      0, NI_NUMERICHOST) != 0)
        return "";
    return text;
}

}  // namespace

std::string HostLink::peer_address() const {
    sockaddr_storage name{};
    socklen_t bytes = sizeof name;
    if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return "";
    return text_of(name, bytes);
}

std::string HostLink::own_address() const {
    sockaddr_storage name{};
    socklen_t bytes = sizeof name;
    if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return "";
    return text_of(name, bytes);
}

void HostLink::close(const std::string& why) {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
    if (closed_why_.empty()) closed_why_ = why;
}

void HostLink::send(const HostHeader& header, Bytes body) {
    if (socket_ < 0) return;
    HIROBA_INVARIANT(met_ && body.size() <= body_bytes_max, "frame of kind %u, %lu bytes, met %d",
                     static_cast<unsigned>(header.kind), body.size(), met_ ? 1 : 0);
    const FrameHead head{
        0, static_cast<std::uint32_t>(body.size()), header.kind, header.rank, 0, header.number};
    const std::size_t start = out_.size();
    append(out_, bytes_of(head));
    append(out_, body);
    const std::uint64_t tag = tag_of(out_key_, std::span(out_).subspan(start), sent_++);
    std::memcpy(out_.data() + start, &tag, sizeof tag);
    flush();
}

void HostLink::flush() {
    while (socket_ >= 0 && unsent_bytes() > 0) {
        const ssize_t sent =
            ::send(socket_, out_.data() + out_sent_, unsent_bytes(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) return;
        // Bytes that the peer sent before it went can still be read; receive() finds the end.
        if (sent < 0) {
            out_sent_ = out_.size();
            break;
        }
        out_sent_ += static_cast<std::size_t>(sent);
    }
    if (unsent_bytes() > 0) return;
    out_.clear();
    out_sent_ = 0;
}

void HostLink::take_in() {
    // No more than a first frame of a stranger is kept.
    const std::size_t most = sizeof(Greeting) + sizeof(FrameHead) +
                             (authentic() ? body_bytes_max : first_body_bytes_max);
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(in_taken_));
    in_taken_ = 0;
    while (socket_ >= 0 && !at_end_ && in_.size() < most) {
        const std::size_t before = in_.size();
        in_.resize(most);
        const ssize_t got = ::recv(socket_, in_.data() + before, most - before, MSG_DONTWAIT);
        const int error = errno;
        in_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
        if (got < 0 && error == EINTR) continue;
        if (got < 0 && error == EAGAIN) return;
        if (got > 0) continue;
        at_end_ = true;
        if (got < 0) closed_why_ = std::strerror(error);
    }
}

void HostLink::take_number() {
    Greeting theirs;
    if (in_.size() - in_taken_ < sizeof theirs) return;
    std::memcpy(&theirs, in_.data() + in_taken_, sizeof theirs);
    in_taken_ += sizeof theirs;
    // Our own number back would make both directions' keys one, and our frames valid as theirs.
    if (theirs.magic != greeting_magic || theirs.drawn == drawn_)
        return close("it did not greet as hiroba does");
    out_key_ = wire::small_key(key_, drawn_, theirs.drawn);
    in_key_ = wire::small_key(key_, theirs.drawn, drawn_);
    met_ = true;
}

/// The bytes of the next frame once all are here.
std::span<std::byte> HostLink::next_frame() {
    const std::span have = std::span(in_).subspan(in_taken_);
    FrameHead head;
    if (!met_ || have.size() < sizeof head) return {};
    std::memcpy(&head, have.data(), sizeof head);
    if (head.body_bytes > (authentic() ? body_bytes_max : first_body_bytes_max)) {
        close("a frame of " + std::to_string(head.body_bytes) + " bytes came");
        return {};
    }
    const std::size_t bytes = sizeof head + head.body_bytes;
    return have.size() < bytes ? std::span<std::byte>() : have.first(bytes);
}

std::optional<HostFrame> HostLink::receive() {
    if (socket_ < 0) return std::nullopt;
    std::span<std::byte> frame = next_frame();
    if (frame.empty()) {
        take_in();
        if (!met_) take_number();
        if (socket_ >= 0) frame = next_frame();
    }
    if (frame.empty()) {
        if (at_end_) close("the connection was closed");
        return std::nullopt;
    }
    FrameHead head;
    std::memcpy(&head, frame.data(), sizeof head);
    if (tag_of(in_key_, frame, received_) != head.tag) {
        close("a frame had a wrong tag: its sender does not know the job's key");
        return std::nullopt;
    }
    ++received_;
    in_taken_ += frame.size();
    const std::span body = frame.subspan(sizeof head);
    return HostFrame{{head.kind, head.rank, head.number}, {body.begin(), body.end()}};
}

void limit_silence(int socket, std::uint64_t seconds) noexcept {
    if (seconds == 0) return;
    const int limit = static_cast<int>(std::min<std::uint64_t>(seconds, 30'000));
    const int on = 1, idle = std::max(1, limit / 2), probes = 3;
    const int between = std::max(1, (limit - idle) / probes);
    const unsigned unacknowledged_ms = static_cast<unsigned>(limit) * 1000;
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
                 sizeof unacknowledged_ms);
}

}  // namespace hiroba::net
