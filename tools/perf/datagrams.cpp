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
#include <thread>

#include "base/clock.hpp"
#include "base/fatal.hpp"
#include "base/short_slice.hpp"
#include "net/wire/authenticator.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr std::uint64_t loss_ns = 1'000'000'000;
constexpr std::size_t datagram_bytes_max = 60'000;
constexpr std::size_t segment_bytes = 1'400;
constexpr int socket_bytes = 8 << 20;

/// A bound socket on the loopback interface, and where those of all nodes are.
class Sockets {
public:
    explicit Sockets(Rig& rig) : rig_(rig) {
        fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        auto* plain = reinterpret_cast<sockaddr*>(&address);
        if (fd_ < 0 || ::bind(fd_, plain, sizeof address) != 0 ||
            ::getsockname(fd_, plain, &length) != 0) {
            die(exit_environment, "a UDP socket on 127.0.0.1 for the floor: %s", ::strerror(errno));
        }
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &socket_bytes, sizeof socket_bytes);
        ::setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof socket_bytes);
        addresses_.resize(rig.plan().nodes);
        rig.collectives().all_gather(std::as_bytes(std::span(&address, 1)),
                                     std::as_writable_bytes(std::span(addresses_)));
    }
    ~Sockets() { ::close(fd_); }
    Sockets(const Sockets&) = delete;
    Sockets& operator=(const Sockets&) = delete;

    int fd() const { return fd_; }
    const sockaddr* address(NodeId node) const {
        return reinterpret_cast<const sockaddr*>(&addresses_[node.value]);
    }
    void send(NodeId to, const std::byte* from, std::size_t bytes) {
        while (::sendto(fd_, from, bytes, 0, address(to), sizeof(sockaddr_in)) < 0) sched_yield();
    }
    /// @return the datagram's bytes
    std::size_t receive(std::byte* to, std::size_t bytes) {
        ssize_t received = 0;
        std::uint64_t begun_ns = 0, tries = 0;
        rig_.spin_until([&] {
            received = ::recv(fd_, to, bytes, 0);
            if (received >= 0) return true;
            if (++tries % 4096 != 0) return false;
            if (begun_ns == 0) begun_ns = now_ns();
            if (now_ns() - begun_ns < loss_ns) return false;
            die(exit_environment,
                "a raw datagram of the floor was lost after %lu tries. Raise "
                "net.core.rmem_max",
                tries);
        });
        return static_cast<std::size_t>(received);
    }

private:
    Rig& rig_;
    int fd_ = -1;
    std::vector<sockaddr_in> addresses_;
};

class DatagramPingPong final : public PingPong {
public:
    DatagramPingPong(Rig& rig, std::size_t there, std::size_t back)
        : rig_(rig),
          sockets_(rig),
          there_(std::min(there, datagram_bytes_max)),
          back_(std::min(back, datagram_bytes_max)),
          buffer_(datagram_bytes_max) {}
    Sockets& sockets() { return sockets_; }
    void lead(std::uint64_t iterations) override {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            sockets_.send(rig_.partner(), buffer_.data(), there_);
            sockets_.receive(buffer_.data(), buffer_.size());
        }
    }
    void follow(std::uint64_t iterations) override {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            sockets_.receive(buffer_.data(), buffer_.size());
            sockets_.send(rig_.partner(), buffer_.data(), back_);
        }
    }

private:
    Rig& rig_;
    Sockets sockets_;
    std::size_t there_, back_;
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
        ask_for_short_slices();
        while (true) {
            pollfd watched{asked_.sockets().fd(), POLLIN, 0};
            ::poll(&watched, 1, -1);
            if (over_.load(std::memory_order_acquire)) return;
            asked_.follow(1);
        }
    }
    Rig& rig_;
    DatagramPingPong asked_;
    std::atomic<bool> over_{false};
    std::thread answering_;
};

/// A datagram says who sent it and in which exchange, since others may already be in the next.
class DatagramExchange final : public RawExchange {
public:
    DatagramExchange(Rig& rig, std::size_t bytes)
        : rig_(rig),
          sockets_(rig),
          bytes_(bytes),
          out_(8 + std::min(bytes, datagram_bytes_max)),
          in_(out_.size()),
          early_(rig.plan().nodes) {}
    void exchange(const std::byte* mine, std::byte* all) override {
        const std::uint32_t nodes = rig_.plan().nodes;
        const std::uint32_t stamp[2] = {rig_.self(), ++number_};
        std::memcpy(out_.data(), stamp, sizeof stamp);
        if (bytes_ != 0) std::memcpy(out_.data() + 8, mine, out_.size() - 8);
        std::uint32_t missing = nodes - 1;
        for (std::uint32_t rank = 0; rank < nodes; ++rank) {
            if (rank != rig_.self()) sockets_.send(NodeId{rank}, out_.data(), out_.size());
            if (rank == rig_.self() && bytes_ != 0) std::memcpy(all + rank * bytes_, mine, bytes_);
            if (early_[rank].empty()) continue;
            std::memcpy(all + rank * bytes_, early_[rank].data() + 8, early_[rank].size() - 8);
            early_[rank].clear();
            --missing;
        }
        while (missing != 0) {
            const std::size_t received = sockets_.receive(in_.data(), in_.size());
            std::uint32_t theirs[2] = {};
            if (received == in_.size()) std::memcpy(theirs, in_.data(), sizeof theirs);
            if (theirs[0] >= nodes) continue;
            if (theirs[1] != number_) {
                early_[theirs[0]] = in_;
                continue;
            }
            std::memcpy(all + theirs[0] * bytes_, in_.data() + 8, in_.size() - 8);
            --missing;
        }
    }

private:
    Rig& rig_;
    Sockets sockets_;
    std::size_t bytes_;
    std::uint32_t number_ = 0;
    std::vector<std::byte> out_, in_;
    std::vector<std::vector<std::byte>> early_;
};

/// Segmentation offload sends 60 KB at a time, receive offload takes as much; every 16th send is
/// answered, so that no more is under way than the receiver's socket holds.
class GsoStream final : public DatagramStream {
public:
    GsoStream(Rig& rig, Content content)
        : rig_(rig), content_(content), sockets_(rig), buffer_(65'536) {
        const int segment = segment_bytes, on = 1;
        ::setsockopt(sockets_.fd(), SOL_UDP, UDP_SEGMENT, &segment, sizeof segment);
        ::setsockopt(sockets_.fd(), SOL_UDP, UDP_GRO, &on, sizeof on);
    }
    void lead(std::size_t bytes) override {
        std::size_t since_answer = 0;
        for (std::size_t sent = 0; sent < bytes;) {
            const std::size_t part = std::min(send_bytes, bytes - sent);
            for_each_segment(part, [](std::byte* place, std::uint64_t hash) {
                std::memcpy(place, &hash, sizeof hash);
            });
            sockets_.send(rig_.partner(), buffer_.data(), part);
            sent += part;
            since_answer += part;
            if (since_answer < answer_bytes && sent < bytes) continue;
            sockets_.receive(buffer_.data(), buffer_.size());
            since_answer = 0;
        }
    }
    void follow(std::size_t bytes) override {
        std::size_t since_answer = 0;
        for (std::size_t taken = 0; taken < bytes;) {
            const std::size_t part = sockets_.receive(buffer_.data(), buffer_.size());
            for_each_segment(part, [](std::byte* place, std::uint64_t hash) {
                if (std::memcmp(place, &hash, sizeof hash) != 0) fatal("a segment was changed");
            });
            taken += part;
            since_answer += part;
            if (since_answer < answer_bytes && taken < bytes) continue;
            sockets_.send(rig_.partner(), buffer_.data(), 64);
            since_answer = 0;
        }
    }

private:
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
    static constexpr std::size_t send_bytes = segment_bytes * 43;
    static constexpr std::size_t answer_bytes = send_bytes * 8;
    Rig& rig_;
    Content content_;
    net::wire::DirectionKey key_ = net::wire::direction_key({1, 2}, 3, 4);
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
