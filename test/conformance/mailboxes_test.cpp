// SPDX-License-Identifier: BSD-3-Clause
// Role: mails between real processes and simulated nodes, over each provider as it is and as if it
// mapped nothing: they come once, in order and whole, whatever carries them, and wake their reader.
#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "conformance/both_ways.hpp"
#include "net/kick/kick.hpp"

namespace hiroba::conformance {
namespace {

using net::kick::Board;
using net::kick::Mailboxes;

HIROBA_CONFORMANCE(Mail);

constexpr std::uint64_t job_key = 7;
constexpr std::uint64_t safety_net_ns = 100'000'000;  // a sleep without a wake-up

struct Node {
    Node(Rig& rig, bool mapped) {
        endpoint = open_mapped(rig, mapped, job_key);
        board = need(Mailboxes::make_board(*endpoint, job_key));
        mail = need(Mailboxes::create(*endpoint, board.get(), net::MessageKind::test));
        need(endpoint->connect());
        if (board != nullptr) board->attach();
        mail->attach();
    }
    std::unique_ptr<net::Endpoint> endpoint;
    std::unique_ptr<Board> board;  ///< null where nothing is mapped
    std::unique_ptr<Mailboxes> mail;
};

/// What `from` writes to `to` as number `number`: its length, and what its words are made of.
/// Author and reader draw it alike.
struct Letter {
    Letter(std::uint32_t from, std::uint32_t to, std::uint64_t number)
        : random(number * 64 + from * 8 + to), words(length(random)) {}
    static std::size_t length(Random& random) {
        constexpr std::size_t most = Mailboxes::mail_bytes_max / 8;
        constexpr std::size_t within = Mailboxes::inline_bytes_max / 8;
        switch (random.below(8)) {
            case 0: return 0;
            case 1: return within;
            case 2: return within + 1;
            case 3: return most;
            case 4: return random.below(most + 1);
            default: return random.below(within);
        }
    }
    void write(MutableBytes out) {
        for (std::size_t i = 0; i < words; ++i) {
            const std::uint64_t word = random();
            std::memcpy(out.data() + 8 * i, &word, sizeof word);
        }
    }
    bool is(Bytes mail) {
        if (mail.size() != 8 * words) return false;
        bool equal = true;
        for (std::size_t i = 0; i < words; ++i) {
            std::uint64_t word = 0;
            std::memcpy(&word, mail.data() + 8 * i, sizeof word);
            equal &= word == random();
        }
        return equal;
    }
    Random random;
    std::size_t words;
};

void send(Mailboxes& mail, std::uint32_t self, std::uint32_t to, std::uint64_t number) {
    Letter letter{self, to, number};
    letter.write(mail.compose(to));
    mail.post(to, 8 * letter.words);
}

TEST_P(Mail, comes_in_order_and_whole_however_long_and_whatever_carries_it) {
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            Mailboxes& mail = *node.mail;
            const std::uint32_t self = rig.self.value;
            Random random{self};
            std::uint64_t wrong = 0;  // told at the end: a peer may wait for the next mail
            const std::uint64_t rounds = rig.storm ? 12 : rig.rounds(2'000);
            // As barriers do: all send to all, and no node starts before it has heard from all.
            for (std::uint64_t number = 0; number < rounds; ++number) {
                for (std::uint32_t to = 0; to < rig.nodes; ++to) {
                    if (to == self) continue;
                    const bool window = random.below(3) != 0;
                    mail.choose(window ? Mailboxes::Way::window : Mailboxes::Way::message);
                    send(mail, self, to, number);
                }
                for (std::uint32_t from = 0; from < rig.nodes; ++from) {
                    if (from == self) continue;
                    mail.wait_for([&] { return mail.has_come(from); });
                    wrong += Letter{from, self, number}.is(mail.front(from)) ? 0 : 1;
                    mail.take(from);
                }
            }
            EXPECT_EQ(wrong, 0u);
            for (std::uint32_t from = 0; from < rig.nodes; ++from)
                EXPECT_FALSE(from != self && mail.has_come(from));
            rig.meet();
        });
    });
}

TEST_P(Mail, is_not_overwritten_before_it_was_taken) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "nobody writes to itself";
    run([](Rig& rig) {
        Node node{rig, true};
        Mailboxes& mail = *node.mail;
        const bool waits_for_room = node.board != nullptr &&
                                    node.board->at(NodeId{0}, 0) != nullptr &&
                                    node.board->at(NodeId{1}, 0) != nullptr;
        if (waits_for_room && rig.self.value < 2) {
            const std::uint64_t rounds = rig.rounds(4'000);
            Random random{3};
            std::uint64_t wrong = 0;
            for (std::uint64_t number = 0; number < rounds; ++number) {
                if (rig.self.value == 0) {  // as fast as it can
                    send(mail, 0, 1, number);
                    continue;
                }
                mail.wait_for([&] { return mail.has_come(0); });
                for (std::uint64_t i = random.below(2'000); i != 0; --i) __builtin_ia32_pause();
                wrong += Letter{0, 1, number}.is(mail.front(0)) ? 0 : 1;
                mail.take(0);
            }
            EXPECT_EQ(wrong, 0u);
        }
        rig.meet();
    });
}

TEST_P(Mail, wakes_a_reader_that_sleeps) {
    if (GetParam().nodes == 1) GTEST_SKIP() << "nobody writes to itself";
    run([](Rig& rig) {
        both_ways(rig, [&](bool mapped) {
            Node node{rig, mapped};
            Mailboxes& mail = *node.mail;
            constexpr std::uint64_t rounds = 40;
            const std::uint64_t begun_ns = now_ns();
            for (std::uint64_t round = 0; rig.self.value < 2 && round < rounds; ++round) {
                const std::uint32_t other = 1 - rig.self.value;
                if (round % 2 == rig.self.value) {
                    // Longer than a waiter stays awake.
                    node.endpoint->wait_until([] { return false; }, now_ns() + 3'000'000);
                    send(mail, rig.self.value, other, round);
                } else {
                    mail.wait_for([&] { return mail.has_come(other); });
                    EXPECT_TRUE((Letter{other, rig.self.value, round}.is(mail.front(other))));
                    mail.take(other);
                }
            }
            const std::uint64_t spent_ns = now_ns() - begun_ns;
            EXPECT_TRUE(rig.storm || spent_ns < rounds / 2 * safety_net_ns) << spent_ns;
            rig.meet();
        });
    });
}

}  // namespace
}  // namespace hiroba::conformance
