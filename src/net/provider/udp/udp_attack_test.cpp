// SPDX-License-Identifier: BSD-3-Clause
// Role: somebody who reads everything on the network throws the job's own datagrams back at it,
// whole, spoiled, and from another job. The long run:
// HIROBA_FUZZ_COUNT=10000000 test_net --gtest_filter='*UdpAttack.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/test_parts/given_number.hpp"
#include "net/provider/udp/test_pair.hpp"
#include "net/wire/crypto_library.hpp"
#include "net/wire/datagram_samples.hpp"

namespace hiroba::net::udp {
namespace {

using Datagram = std::vector<std::byte>;

/// A node's rank or sequence, where it lies in a datagram.
template <class Number>
Number number_at(const Datagram& datagram, std::size_t at) {
    Number number;
    std::memcpy(&number, datagram.data() + at, sizeof number);
    return number;
}
std::uint32_t target_of(const Datagram& datagram) { return number_at<std::uint32_t>(datagram, 12); }
bool is_data(const Datagram& datagram) { return number_at<std::uint64_t>(datagram, 16) != 0; }

/// Stands between the two nodes of a job, hands on what they say, and remembers the last of it.
class Relay {
public:
    Relay() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        sockaddr_in name{};
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof name;
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
        EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &bytes), 0);
        port_ = ntohs(name.sin_port);
    }
    ~Relay() { close(fd_); }
    std::uint16_t port() const { return port_; }
    void serve(const Pair& pair) { pair_ = &pair; }

    /// Has `datagram` sent to node `rank` of the job with the next flush().
    void throw_at(std::uint32_t rank, Datagram datagram) {
        thrown_.emplace_back(rank, std::move(datagram));
        if (thrown_.size() == batch_max) flush();
    }
    void flush() {
        sockaddr_in to[2] = {};
        iovec pieces[batch_max];
        mmsghdr batch[batch_max] = {};
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
            to[rank].sin_family = AF_INET;
            to[rank].sin_port = htons(pair_->nodes[rank]->port());
            to[rank].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        }
        const auto count = static_cast<unsigned>(thrown_.size());
        for (unsigned i = 0; i < count; ++i) {
            pieces[i] = {thrown_[i].second.data(), thrown_[i].second.size()};
            batch[i].msg_hdr.msg_name = &to[thrown_[i].first];
            batch[i].msg_hdr.msg_namelen = sizeof to[0];
            batch[i].msg_hdr.msg_iov = &pieces[i];
            batch[i].msg_hdr.msg_iovlen = 1;
        }
        for (unsigned done = 0; done < count;) {
            const int some = sendmmsg(fd_, batch + done, count - done, 0);
            ASSERT_GT(some, 0);
            done += static_cast<unsigned>(some);
        }
        sent_ += count;
        thrown_.clear();
    }
    void pump() {
        for (;;) {
            const ssize_t bytes = recv(fd_, buffer_.data(), buffer_.size(), 0);
            if (bytes < 0) break;
            const auto end = buffer_.begin() + bytes;
            // Forgets the oldest.
            Datagram& place = seen_.size() < remembered_max ? seen_.emplace_back()
                                                            : seen_[next_++ % remembered_max];
            place.assign(buffer_.begin(), end);
            throw_at(target_of(place), place);
        }
        flush();
    }
    const std::vector<Datagram>& seen() const { return seen_; }
    std::uint64_t sent() const { return sent_; }

private:
    static constexpr std::size_t remembered_max = 64;
    int fd_;
    std::uint16_t port_ = 0;
    const Pair* pair_ = nullptr;
    static constexpr std::size_t batch_max = 64;
    Datagram buffer_ = Datagram(65536);
    std::vector<Datagram> seen_;
    std::size_t next_ = 0;
    std::vector<std::pair<std::uint32_t, Datagram>> thrown_;
    std::uint64_t sent_ = 0;
};

/// A job whose nodes reach each other through a relay only.
struct TappedJob {
    explicit TappedJob(std::uint64_t key, Secrecy secrecy)
        : pair(0, key, relay.port(), {}, secrecy) {
        relay.serve(pair);
    }
    template <class Ready>
    bool run_until(Ready ready) {
        return pair.poll_until([&] {
            relay.pump();
            return ready();
        });
    }
    /// Each node adds 1 to a word of the other and puts some bytes there.
    void work() {
        const std::uint64_t word = ++rounds;
        const Bytes bytes = std::as_bytes(std::span(&word, 1));
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
            UdpProvider& node = *pair.nodes[rank];
            const NodeId other{1 - rank};
            ASSERT_EQ(node.atomic(OpId{1}, AtomicOp::fetch_add, other, RegionId{0}, 0, 1, 0, &old),
                      Post::posted);
            ASSERT_EQ(node.put(OpId{1}, other, RegionId{0}, 8, bytes), Post::posted);
        }
        const auto done = [&](std::uint32_t rank) {
            return pair.seen[rank].completions == static_cast<int>(2 * rounds);
        };
        ASSERT_TRUE(run_until([&] { return done(0) && done(1); })) << rounds;
    }
    std::uint64_t counted(std::uint64_t (*count)(const Counts&)) {
        return count(pair.nodes[0]->counts()) + count(pair.nodes[1]->counts());
    }
    Relay relay;
    Pair pair;
    std::uint64_t rounds = 0, old = 0;
};

class UdpAttack : public testing::TestWithParam<Secrecy> {};
INSTANTIATE_TEST_SUITE_P(Each, UdpAttack, testing::Values(Secrecy::open, Secrecy::encrypted),
                         [](const auto& info) {
                             return info.param == Secrecy::open ? "open" : "encrypted";
                         });

TEST_P(UdpAttack, with_recorded_spoiled_and_foreign_datagrams_changes_nothing_and_is_counted) {
    const std::uint64_t count = given_number("HIROBA_FUZZ_COUNT", 20'000);
    constexpr std::uint64_t batch = 64;  // between two pieces of work
    if (GetParam() == Secrecy::encrypted)
        if (const auto loaded = wire::CryptoLibrary::load(); !loaded)
            GTEST_SKIP() << loaded.error().text;
    TappedJob job{7, GetParam()}, foreign{8, GetParam()};
    foreign.work();
    Random random{42};
    std::uint64_t spoiled = 0, replayed = 0;
    for (std::uint64_t thrown = 0; thrown < count; ++thrown) {
        if (thrown % batch == 0) job.work();
        const auto& seen = job.relay.seen();
        const auto& others = foreign.relay.seen();
        Datagram datagram = seen[random.below(seen.size())];
        const std::uint32_t target = target_of(datagram);
        switch (random.below(4)) {
            case 0: replayed += is_data(datagram); break;
            case 1:
                datagram = others[random.below(others.size())];
                ++spoiled;
                break;
            default:
                datagram = wire::samples::mutated(seen, random);
                // By cutting and joining it may have become another whole one.
                if (std::find(seen.begin(), seen.end(), datagram) != seen.end()) continue;
                ++spoiled;
        }
        job.relay.throw_at(target, std::move(datagram));
        const auto received = [](const Counts& counts) { return counts.received; };
        if (thrown % batch != batch - 1) continue;
        job.relay.flush();
        ASSERT_TRUE(job.run_until([&] { return job.counted(received) >= job.relay.sent(); }));
    }
    job.relay.flush();
    job.work();

    EXPECT_EQ(job.counted([](const Counts& counts) { return counts.refused_sum(); }), spoiled);
    EXPECT_GE(job.counted([](const Counts& counts) { return counts.seen_before; }), replayed);
    EXPECT_GT(replayed, count / 16);
    for (const auto& node : job.pair.nodes) {
        const MutableBytes memory = node->local(RegionId{0});
        std::uint64_t words[2];
        std::memcpy(words, memory.data(), sizeof words);
        EXPECT_EQ(words[0], job.rounds);
        EXPECT_EQ(words[1], job.rounds);
        for (std::size_t i = sizeof words; i < memory.size(); ++i)
            ASSERT_EQ(memory[i], std::byte{});
    }
}

/// What node 0 puts, and what the wire carried meanwhile.
bool wire_shows_what_is_put(Secrecy secrecy) {
    const std::string text = "what nobody but the two nodes is to read";
    TappedJob job{7, secrecy};
    EXPECT_EQ(
        job.pair.nodes[0]->put(OpId{1}, NodeId{1}, RegionId{0}, 64, std::as_bytes(std::span(text))),
        Post::posted);
    EXPECT_TRUE(job.run_until([&] { return job.pair.seen[0].completions == 1; }));
    EXPECT_EQ(
        std::memcmp(job.pair.nodes[1]->local(RegionId{0}).data() + 64, text.data(), text.size()),
        0);
    return std::ranges::any_of(job.relay.seen(), [&](const Datagram& datagram) {
        return std::string_view(reinterpret_cast<const char*>(datagram.data()), datagram.size())
                   .find(text) != std::string_view::npos;
    });
}

TEST(UdpTapped, shows_what_is_put_only_where_nothing_is_encrypted) {
    EXPECT_TRUE(wire_shows_what_is_put(Secrecy::open));
    if (const auto loaded = wire::CryptoLibrary::load(); !loaded)
        GTEST_SKIP() << loaded.error().text;
    EXPECT_FALSE(wire_shows_what_is_put(Secrecy::encrypted));
}

}  // namespace
}  // namespace hiroba::net::udp
