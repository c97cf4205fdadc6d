// SPDX-License-Identifier: BSD-3-Clause
// Role: somebody who hears every datagram of a job and throws at its sockets what he made of them:
// preloaded into the nodes, he sees what they send, and sends by a socket of his own, to where it
// went and to the bell beside that. Datagrams as they were, cut, grown, joined, with flipped bits,
// made to look like the next of their sequence, from another node, and bytes that are none.
// EAVESDROPPER_SEED is drawn from; each process says at its end how many it threw.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

namespace {

using Datagram = std::vector<unsigned char>;

/// Where the numbers lie that a forger changes; net/wire/datagram.hpp has the whole layout.
constexpr std::size_t from_at = 8, to_at = 12, sequence_at = 16, acknowledged_at = 24;
constexpr std::size_t header_bytes = 40, record_offset_at = header_bytes + 8;

template <class Function>
Function real(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

class Eavesdropper {
public:
    Eavesdropper() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        const char* const seed = std::getenv("EAVESDROPPER_SEED");
        state_ = (seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10)) + 1'000 * ::getpid();
    }
    ~Eavesdropper() {
        const std::scoped_lock lock{latch_};
        over_ = true;
        if (thrown_ != 0)
            std::fprintf(stderr, "eavesdropper: %lu thrown, %lu of them replayed\n", thrown_,
                         replayed_);
    }

    /// A datagram went to `name`.
    void hear(const sockaddr_in& name, std::span<const unsigned char> datagram) {
        const std::scoped_lock lock{latch_};
        if (over_ || datagram.size() < header_bytes) return;
        Heard& place = heard_[count_++ % heard_.size()];
        place.to = name;
        place.bytes.assign(datagram.begin(), datagram.end());
        for (std::uint64_t times = below(3); times != 0; --times) throw_one(place);
    }

private:
    struct Heard {
        sockaddr_in to{};
        Datagram bytes;
    };

    /// SplitMix64.
    std::uint64_t below(std::uint64_t bound) {
        std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15u;
        z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9u;
        z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBu;
        return (z ^ (z >> 31)) % bound;
    }
    const Heard& any() { return heard_[below(std::min<std::uint64_t>(count_, heard_.size()))]; }

    /// Changes a number of the header, of `bytes` bytes.
    static void change(Datagram& datagram, std::size_t at, std::size_t bytes, std::uint64_t by) {
        std::uint64_t number = 0;
        std::memcpy(&number, datagram.data() + at, bytes);
        number += by;
        std::memcpy(datagram.data() + at, &number, bytes);
    }

    Datagram spoiled(const Heard& latest) {
        Datagram datagram = below(2) == 0 ? latest.bytes : any().bytes;
        switch (below(9)) {
            case 0: datagram.resize(below(datagram.size())); break;
            case 1: datagram.resize(datagram.size() + 1 + below(64), 0); break;
            case 2: datagram[below(datagram.size())] ^= 1 << below(8); break;
            case 3: change(datagram, sequence_at, 8, 1 + below(3)); break;
            case 4: change(datagram, acknowledged_at, 6, 1 + below(40)); break;
            case 5: change(datagram, from_at, 4, 1); break;
            case 6: change(datagram, to_at, 4, 1); break;
            case 7:
                change(datagram, sequence_at, 8, 1);
                if (datagram.size() >= record_offset_at + 8)
                    change(datagram, record_offset_at, 8, 8 * below(8'000));
                break;
            default:
                for (unsigned char& byte : datagram) byte = static_cast<unsigned char>(below(256));
        }
        return datagram;
    }

    void throw_one(const Heard& latest) {
        const bool replays = below(3) == 0;
        const Heard& source = replays ? any() : latest;
        const Datagram datagram = replays ? source.bytes : spoiled(latest);
        sockaddr_in to = source.to;
        if (below(8) == 0) to.sin_port = htons(static_cast<std::uint16_t>(ntohs(to.sin_port) + 1));
        static const auto send = real<decltype(&::sendto)>("sendto");
        const int saved = errno;
        if (send(fd_, datagram.data(), datagram.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                 sizeof to) >= 0) {
            ++thrown_;
            replayed_ += replays;
        }
        errno = saved;
    }

    int fd_;
    std::mutex latch_;
    bool over_ = false;
    std::uint64_t state_ = 0, count_ = 0, thrown_ = 0, replayed_ = 0;
    std::array<Heard, 128> heard_;
};

Eavesdropper& eavesdropper() {
    static Eavesdropper one;
    return one;
}

/// Whether what is sent by `fd`, to `name` or to whom it is connected, goes to an IPv4 address.
bool goes_to(int fd, const void* name, std::size_t bytes, sockaddr_in& to) {
    if (name != nullptr) {
        std::memcpy(&to, name, std::min(bytes, sizeof to));
        return to.sin_family == AF_INET;
    }
    int type = 0;
    socklen_t size = sizeof type, name_bytes = sizeof to;
    const int saved = errno;
    const bool found = ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                       type == SOCK_DGRAM &&
                       ::getpeername(fd, reinterpret_cast<sockaddr*>(&to), &name_bytes) == 0;
    errno = saved;
    return found && to.sin_family == AF_INET;
}

/// Each piece of a message of the provider is a datagram.
void hear(int fd, const msghdr& message) {
    sockaddr_in to{};
    if (!goes_to(fd, message.msg_name, message.msg_namelen, to)) return;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
        const iovec& piece = message.msg_iov[i];
        eavesdropper().hear(to, {static_cast<const unsigned char*>(piece.iov_base), piece.iov_len});
    }
}

}  // namespace

extern "C" {

ssize_t sendto(int fd, const void* bytes, size_t count, int flags, const sockaddr* name,
               socklen_t name_bytes) {
    static const auto next = real<decltype(&::sendto)>("sendto");
    const ssize_t sent = next(fd, bytes, count, flags, name, name_bytes);
    sockaddr_in to{};
    if (sent > 0 && goes_to(fd, name, name_bytes, to))
        eavesdropper().hear(to, {static_cast<const unsigned char*>(bytes), count});
    return sent;
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    static const auto next = real<decltype(&::sendmsg)>("sendmsg");
    const ssize_t sent = next(fd, message, flags);
    if (sent > 0) hear(fd, *message);
    return sent;
}

int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
    static const auto next = real<decltype(&::sendmmsg)>("sendmmsg");
    const int sent = next(fd, messages, count, flags);
    for (int i = 0; i < sent; ++i) hear(fd, messages[i].msg_hdr);
    return sent;
}

}  // extern "C"
