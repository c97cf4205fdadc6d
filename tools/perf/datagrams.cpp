// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/datagrams.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/settings.hpp"
#include "base/short_slice.hpp"
#include "net/bootstrap/port_range.hpp"
#include "net/wire/authenticator.hpp"

namespace hiroba::tools::perf_parts {
namespace {

/// A partner that only lacks a core answers sooner. After as long the next exchange is tried.
constexpr std::uint64_t loss_ns = 100'000'000;
constexpr int tries_max = 3;
constexpr std::size_t datagram_bytes_max = 60'000;
constexpr std::size_t segment_bytes = 1'400;
constexpr int socket_bytes = 8 << 20;

/// IPv4 or IPv6, as the job's network has it. All nodes have the same bytes of it.
struct SocketAddress {
    union {
        sockaddr plain;
        sockaddr_in four;
        sockaddr_in6 six;
    };
    SocketAddress() { ::memset(static_cast<void*>(this), 0, sizeof *this); }
    socklen_t length() const { return plain.sa_family == AF_INET6 ? sizeof six : sizeof four; }
};

/// By which peers reach this node; where there is one host, loopback.
std::string floor_address(const net::JobInfo& job) {
    return job.hosts == 1 || job.network.empty() ? "127.0.0.1" : job.network;
}

/// A socket bound to this node's address, on a free port of HIROBA_PORTS if it is set.
int bound_socket(const net::JobInfo& job, SocketAddress& address) {
    const std::string text = floor_address(job);
    if (::inet_pton(AF_INET, text.c_str(), &address.four.sin_addr) == 1) {
        address.plain.sa_family = AF_INET;
    } else if (::inet_pton(AF_INET6, text.c_str(), &address.six.sin6_addr) == 1) {
        address.plain.sa_family = AF_INET6;
    } else {
        die(exit_environment, "a floor between hosts: %s is no address", text.c_str());
    }
    const auto range = net::port_range(job.hosts == 1 ? "" : setting("HIROBA_PORTS"));
    if (!range) die(exit_usage, "%s", range.error().text.c_str());
    const int fd = ::socket(address.plain.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    for (std::uint32_t port = range->first; fd >= 0 && port <= range->last; ++port) {
        address.four.sin_port = htons(static_cast<std::uint16_t>(port));  // where six has it, too
        if (::bind(fd, &address.plain, address.length()) == 0) return fd;
    }
    die(exit_environment, "a UDP socket on %s for the floor: %s", text.c_str(), ::strerror(errno));
}

/// A bound socket that receives, and one connected to each node's, which sends: the kernel then
/// looks up no route for each datagram.
class Sockets {
public:
    explicit Sockets(Rig& rig) : rig_(rig) {
        SocketAddress address;
        fd_ = bound_socket(rig.job(), address);
        socklen_t length = sizeof address;
        if (::getsockname(fd_, &address.plain, &length) != 0)
            die(exit_environment, "a floor's socket has no name: %s", ::strerror(errno));
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &socket_bytes, sizeof socket_bytes);
        std::vector<SocketAddress> addresses(rig.plan().nodes);
        rig.collectives().all_gather(std::as_bytes(std::span(&address, 1)),
                                     std::as_writable_bytes(std::span(addresses)));
        for (const SocketAddress& peer : addresses) senders_.push_back(connected_to(peer));
    }
    ~Sockets() {
        ::close(fd_);
        for (const int sender : senders_) ::close(sender);
    }
    Sockets(const Sockets&) = delete;
    Sockets& operator=(const Sockets&) = delete;

    int fd() const { return fd_; }
    /// The socket that sends to `node`.
    int sender(NodeId node) const { return senders_[node.value]; }
    void send(NodeId to, const std::byte* from, std::size_t bytes) {
        while (::send(sender(to), from, bytes, 0) < 0) {
            const bool is_full = errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
            // A peer that has closed its socket is told by the next send.
            if (!is_full && errno != ECONNREFUSED) {
                die(exit_environment, "a datagram of %lu bytes to node %u for the floor: %s", bytes,
                    to.value, ::strerror(errno));
            }
            sched_yield();
        }
    }
    /// @return the datagram's bytes; 0: none came, and a loss was counted
    std::size_t receive(std::byte* to, std::size_t bytes) {
        ssize_t received = 0;
        std::uint64_t begun_ns = 0, tries = 0;
        rig_.spin_until([&] {
            received = ::recv(fd_, to, bytes, 0);
            if (received > 0) return true;
            if (++tries % 256 != 0) return false;
            if (begun_ns == 0) begun_ns = now_ns();
            return now_ns() - begun_ns >= loss_ns;
        });
        if (received > 0) return static_cast<std::size_t>(received);
        rig_.count_loss();
        return 0;
    }

private:
    static int connected_to(const SocketAddress& peer) {
        const int fd = ::socket(peer.plain.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || ::connect(fd, &peer.plain, peer.length()) != 0)
            die(exit_environment, "a connected UDP socket for the floor: %s", ::strerror(errno));
        ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof socket_bytes);
        return fd;
    }
    Rig& rig_;
    int fd_ = -1;
    std::vector<int> senders_;
};

/// Every exchange has a number. One whose datagram or answer is lost is given up by both sides
/// after a while, or by the follower as soon as it sees the next; its time stays in the sample.
/// What no datagram holds goes as several of the same number.
class DatagramPingPong final : public PingPong {
public:
    DatagramPingPong(Rig& rig, std::size_t there, std::size_t back)
        : rig_(rig),
          sockets_(rig),
          there_(std::max(there, number_bytes)),
          back_(std::max(back, number_bytes)),
          buffer_(datagram_bytes_max) {}
    Sockets& sockets() { return sockets_; }
    void lead(std::uint64_t iterations) override {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            const std::uint64_t number = ++number_;
            send(number, there_);
            while (receive_number(number, back_) < number) continue;
        }
    }
    void follow(std::uint64_t iterations) override {
        const std::uint64_t last = number_ + iterations;
        while (number_ < last) {
            number_ = std::max(number_, receive_number(number_ + 1, there_));
            send(number_, back_);
        }
    }
    /// Answers whatever comes next.
    void answer() { send(receive_number(0, there_), back_); }

private:
    static constexpr std::size_t number_bytes = 8;
    static std::size_t datagrams_of(std::size_t bytes) {
        return (bytes + datagram_bytes_max - 1) / datagram_bytes_max;
    }
    void send(std::uint64_t number, std::size_t bytes) {
        std::memcpy(buffer_.data(), &number, number_bytes);
        const std::size_t count = datagrams_of(bytes);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t part = bytes / count + (i < bytes % count ? 1 : 0);
            sockets_.send(rig_.partner(), buffer_.data(), part);
        }
    }
    /// The number of the next `bytes` that come whole; `lost` when no more come.
    std::uint64_t receive_number(std::uint64_t lost, std::size_t bytes) {
        std::uint64_t number = 0;
        for (std::size_t left = datagrams_of(bytes); left != 0; --left) {
            if (sockets_.receive(buffer_.data(), buffer_.size()) < number_bytes) return lost;
            const std::uint64_t before = number;
            std::memcpy(&number, buffer_.data(), number_bytes);
            if (number != before) left = datagrams_of(bytes);
        }
        return number;
    }
    Rig& rig_;
    Sockets sockets_;
    std::size_t there_, back_;
    std::uint64_t number_ = 0;
    std::vector<std::byte> buffer_;
};

/// Ends with the object: a datagram of its own to itself tells the answering thread.
class SleepingPingPong final : public PingPong {
public:
    SleepingPingPong(Rig& rig, std::size_t there, std::size_t back)
        : rig_(rig), asked_(rig, there, back) {
        if (rig.has_partner() && !rig.leads()) answering_ = std::thread{[this] { answer(); }};
    }
    ~SleepingPingPong() override {
        if (!answering_.joinable()) return;
        over_.store(true, std::memory_order_release);  // pairs with answer()
        const std::byte none{};
        asked_.sockets().send(NodeId{rig_.self()}, &none, 1);
        answering_.join();
    }
    void lead(std::uint64_t iterations) override { asked_.lead(iterations); }
    void follow(std::uint64_t) override {}

private:
    void answer() {
        rig_.use_all_cores();
        ask_for_short_slices(ShortSlice::of_service);
        while (true) {
            pollfd watched{asked_.sockets().fd(), POLLIN, 0};
            ::poll(&watched, 1, -1);
            if (over_.load(std::memory_order_acquire)) return;
            asked_.answer();
        }
    }
    Rig& rig_;
    DatagramPingPong asked_;
    std::atomic<bool> over_{false};
    std::thread answering_;
};

/// A datagram says who sent it and in which exchange, since others may already be in the next. Who
/// misses one for long repeats its last two: the peer that misses one of those repeats its own.
class DatagramExchange final : public RawExchange {
public:
    DatagramExchange(Rig& rig, std::size_t bytes)
        : rig_(rig),
          sockets_(rig),
          bytes_(bytes),
          out_(8 + std::min(bytes, datagram_bytes_max)),
          before_(out_.size()),
          in_(out_.size()),
          early_(rig.plan().nodes),
          there_(rig.plan().nodes) {}
    bool exchange(const std::byte* mine, std::byte* all) override {
        const std::uint32_t nodes = rig_.plan().nodes;
        const std::uint32_t stamp[2] = {rig_.self(), ++number_};
        out_.swap(before_);
        std::memcpy(out_.data(), stamp, sizeof stamp);
        if (bytes_ != 0) std::memcpy(out_.data() + 8, mine, out_.size() - 8);
        std::uint32_t missing = nodes - 1;
        for (std::uint32_t rank = 0; rank < nodes; ++rank) {
            there_[rank] = rank == rig_.self() || !early_[rank].empty();
            if (rank != rig_.self()) sockets_.send(NodeId{rank}, out_.data(), out_.size());
            if (rank == rig_.self() && bytes_ != 0) std::memcpy(all + rank * bytes_, mine, bytes_);
            if (early_[rank].empty()) continue;
            std::memcpy(all + rank * bytes_, early_[rank].data() + 8, early_[rank].size() - 8);
            early_[rank].clear();
            --missing;
        }
        for (int lost = 0; missing != 0;) {
            const std::size_t received = sockets_.receive(in_.data(), in_.size());
            if (received == 0) {
                if (++lost == tries_max) return false;
                repeat();
            }
            std::uint32_t theirs[2] = {nodes, 0};
            if (received == in_.size()) std::memcpy(theirs, in_.data(), sizeof theirs);
            if (theirs[0] >= nodes || theirs[1] < number_) continue;
            if (theirs[1] > number_) {
                early_[theirs[0]] = in_;
                continue;
            }
            if (there_[theirs[0]]) continue;
            there_[theirs[0]] = true;
            std::memcpy(all + theirs[0] * bytes_, in_.data() + 8, in_.size() - 8);
            --missing;
        }
        return true;
    }

private:
    void repeat() {
        for (std::uint32_t rank = 0; rank < rig_.plan().nodes; ++rank) {
            if (rank == rig_.self()) continue;
            sockets_.send(NodeId{rank}, before_.data(), before_.size());
            sockets_.send(NodeId{rank}, out_.data(), out_.size());
        }
    }
    Rig& rig_;
    Sockets sockets_;
    std::size_t bytes_;
    std::uint32_t number_ = 0;
    std::vector<std::byte> out_, before_, in_;
    std::vector<std::vector<std::byte>> early_;
    std::vector<bool> there_;  ///< of this exchange
};

/// Segmentation offload sends 60 KB at a time, receive offload takes as much; every 16th send is
/// answered, so that no more is under way than the receiver's socket holds.
class GsoStream final : public DatagramStream {
public:
    GsoStream(Rig& rig, Content content)
        : rig_(rig), content_(content), sockets_(rig), buffer_(65'536) {
        const int segment = segment_bytes, on = 1;
        for (std::uint32_t rank = 0; rank < rig.plan().nodes; ++rank)
            ::setsockopt(sockets_.sender(NodeId{rank}), SOL_UDP, UDP_SEGMENT, &segment,
                         sizeof segment);
        ::setsockopt(sockets_.fd(), SOL_UDP, UDP_GRO, &on, sizeof on);
    }
    void lead(std::size_t bytes) override {
        std::size_t since_answer = 0;
        ++batch_;
        for (std::size_t sent = 0; sent < bytes;) {
            const std::size_t part = std::min(send_bytes, bytes - sent);
            if (part >= stamped_bytes_min) std::memcpy(buffer_.data() + 8, &batch_, 8);
            for_each_segment(part, [](std::byte* place, std::uint64_t hash) {
                std::memcpy(place, &hash, sizeof hash);
            });
            sockets_.send(rig_.partner(), buffer_.data(), part);
            sent += part;
            since_answer += part;
            if (since_answer < answer_bytes && sent < bytes) continue;
            take(64);
            since_answer = 0;
        }
    }
    void follow(std::size_t bytes) override {
        std::size_t since_answer = 0;
        ++batch_;
        for (std::size_t taken = 0; taken < bytes;) {
            const std::size_t part = take(buffer_.size());
            for_each_segment(part, [](std::byte* place, std::uint64_t hash) {
                if (std::memcmp(place, &hash, sizeof hash) != 0) fatal("a segment was changed");
            });
            // Nothing came: neither will the rest of what the leader has an answer to.
            taken += part != 0 ? part : answer_bytes - since_answer;
            since_answer += part;
            if (part != 0 && since_answer < answer_bytes && taken < bytes) continue;
            std::memcpy(buffer_.data() + 8, &batch_, 8);
            sockets_.send(rig_.partner(), buffer_.data(), 64);
            since_answer = 0;
        }
    }

private:
    /// The bytes that came next, of this batch; what was given up of an earlier one is passed over.
    std::size_t take(std::size_t bytes) {
        while (true) {
            const std::size_t received = sockets_.receive(buffer_.data(), bytes);
            std::uint64_t batch = 0;
            if (received >= stamped_bytes_min) std::memcpy(&batch, buffer_.data() + 8, 8);
            if (batch == 0 || batch >= batch_) return received;
        }
    }
    /// `use(place, hash)`: where a segment's hash lies, and what it must be.
    template <class Use>
    void for_each_segment(std::size_t bytes, Use&& use) {
        if (content_ == Content::plain) return;
        for (std::size_t at = 0; at < bytes; at += segment_bytes) {
            std::byte* const place = buffer_.data() + at;
            const std::size_t segment = std::min(segment_bytes, bytes - at);
            if (segment < 16) continue;  // the end of a stream
            use(place, net::wire::authenticator(key_, {place + 8, segment - 8}));
        }
    }
    static constexpr std::size_t stamped_bytes_min = 16;
    static constexpr std::size_t send_bytes = segment_bytes * 43;
    static constexpr std::size_t answer_bytes = send_bytes * 8;
    Rig& rig_;
    Content content_;
    std::uint64_t batch_ = 0;
    net::wire::PartKey parts_ = net::wire::part_key({1, 2});
    net::wire::DirectionKey key_ = net::wire::direction_key({1, 2}, parts_, 3, 4);
    Sockets sockets_;
    std::vector<std::byte> buffer_;
};

}  // namespace

std::unique_ptr<PingPong> make_datagram_ping_pong(Rig& rig, std::size_t there_bytes,
                                                  std::size_t back_bytes) {
    return std::make_unique<DatagramPingPong>(rig, there_bytes, back_bytes);
}

std::unique_ptr<PingPong> make_sleeping_ping_pong(Rig& rig, std::size_t there_bytes,
                                                  std::size_t back_bytes) {
    return std::make_unique<SleepingPingPong>(rig, there_bytes, back_bytes);
}

std::unique_ptr<RawExchange> make_datagram_exchange(Rig& rig, std::size_t bytes) {
    return std::make_unique<DatagramExchange>(rig, bytes);
}

std::unique_ptr<DatagramStream> make_datagram_stream(Rig& rig, Content content) {
    return std::make_unique<GsoStream>(rig, content);
}

}  // namespace hiroba::tools::perf_parts
