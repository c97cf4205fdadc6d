// SPDX-License-Identifier: BSD-3-Clause
// Role: both windows of both ends of a connection under a virtual clock, over a wire that loses,
// doubles, holds back and is cut for a while; ends that stand still now and then. Every record is
// executed once, in order and whole; what counts as acknowledged was executed; and however bad the
// wire was, all ends soon after it is mended. UDP_WINDOW_RUNS is how many seeds (100 here),
// UDP_WINDOW_SEED the first.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/test_parts/given_number.hpp"
#include "net/provider/udp/receive_window.hpp"
#include "net/provider/udp/send_window.hpp"

namespace hiroba::net::udp {
namespace {

constexpr std::uint64_t us = 1'000, ms = 1'000 * us;
constexpr std::size_t record_header_bytes = 16;

/// What a seed draws. Times in nanoseconds, shares in percent.
struct Wire {
    std::uint32_t loss = 0, duplicate = 0, reorder = 0;
    std::uint64_t latency_ns = 5 * us, jitter_ns = 0, held_ns = 0;
    std::uint64_t cut_at_ns = 0, cut_ns = 0;  ///< nothing gets through, either way
    std::uint64_t look_ns = 20 * us;  ///< an end looks after itself this often at the latest
    std::uint32_t stall = 0;          ///< share of looks that come `stall_ns` later
    std::uint64_t stall_ns = 5 * ms;
    std::uint64_t records = 400;  ///< each way
    std::uint64_t in_turns = 0;   ///< so many each, the next after the other end's; 0: at will
    bool copies = true;           ///< what nothing follows is repeated where much is lost
    bool answers = false;         ///< the second end's records are answers to the first's
    std::size_t datagram_bytes = 1400;
};

/// Address space for the slots of four windows, reused by all runs.
class Slots {
public:
    Slots() {
        void* const memory = mmap(nullptr, 4 * window_bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        start_ = static_cast<std::byte*>(memory);
    }
    ~Slots() { munmap(start_, 4 * window_bytes); }
    Slots(const Slots&) = delete;
    std::byte* of(std::size_t window) const { return start_ + window * window_bytes; }

private:
    static constexpr std::size_t window_bytes = window_packets * slot_bytes;
    std::byte* start_;
};

struct Datagram {
    wire::DatagramHeader header;
    std::vector<std::byte> records;
};

std::byte filling(std::uint64_t number, std::size_t at) {
    return static_cast<std::byte>(number * 131 + at * 7);
}

/// One end: what transport.cpp does with the two windows, as plainly as can be.
struct End {
    SendWindow send;
    ReceiveWindow receive;
    std::uint64_t offered = 0;       ///< records composed
    std::uint64_t executed = 0;      ///< records of the other end
    std::uint64_t packets_done = 0;  ///< packets of the other end
    bool answer_now = false, answer_soon = false;
    std::string wrong;
    SendWindow::Content content = SendWindow::Content::work;

    void execute(Bytes records) {
        for (std::size_t at = 0; at < records.size();) {
            std::uint64_t head[2];
            std::memcpy(head, records.data() + at, sizeof head);
            if (head[0] != executed) {
                wrong =
                    "record " + std::to_string(head[0]) + " came as " + std::to_string(executed);
            }
            for (std::size_t i = record_header_bytes; i < head[1]; ++i) {
                if (records[at + i] != filling(head[0], i)) wrong = "a record was changed";
            }
            ++executed;
            at += head[1];
        }
        receive.executed();
        ++packets_done;
        answer_soon = true;
    }
    void take(const Datagram& datagram, std::uint64_t now_ns) {
        if (!send.acknowledge(datagram.header, now_ns)) wrong = "acknowledges what was never sent";
        if (datagram.header.sequence == 0) return;
        receive.arrived();
        answer_now |= (datagram.header.flags & wire::flag_answer_now) != 0;
        switch (receive.fate_of(datagram.header.sequence)) {
            case ReceiveWindow::PacketFate::seen:
                answer_soon = true;
                if ((datagram.header.flags & wire::flag_answer_now) != 0 && send.outstanding())
                    send.peer_asks_again();
                return;
            case ReceiveWindow::PacketFate::beyond: answer_now = true; return;
            case ReceiveWindow::PacketFate::early:
                receive.keep(datagram.header.sequence, datagram.records);
                answer_now = true;
                return;
            case ReceiveWindow::PacketFate::next: break;
        }
        execute(datagram.records);
        for (Bytes front = receive.front(); !front.empty(); front = receive.front()) execute(front);
    }
    /// Composes records while there is room and any are left.
    void compose(std::uint64_t records, Random& random) {
        while (offered < records && send.wants_more()) {
            const std::size_t bytes =
                record_header_bytes + 8 * random.below(random.happens(20) ? 120 : 8);
            std::byte* const at = send.take(bytes, content);
            if (at == nullptr) return;
            const std::uint64_t head[2] = {offered, bytes};
            std::memcpy(at, head, sizeof head);
            for (std::size_t i = record_header_bytes; i < bytes; ++i) at[i] = filling(offered, i);
            ++offered;
        }
    }
};

/// A connection and the wire between its ends.
class Connection {
public:
    Connection(const Slots& slots, std::uint64_t seed, const Wire& weather)
        : weather_(weather), random_(seed) {
        for (std::size_t i = 0; i < 2; ++i) {
            ends_[i] = std::make_unique<End>();
            ends_[i]->send.open(slots.of(2 * i), weather.datagram_bytes);
            ends_[i]->receive.open(slots.of(2 * i + 1));
            events_.push({random_.below(weather.look_ns), ++number_, i, nullptr});
        }
        if (weather.answers) ends_[1]->content = SendWindow::Content::answer;
    }
    /// Until all is executed and acknowledged, or `limit_ns`; says what went wrong.
    std::string run(std::uint64_t limit_ns) {
        while (!finished()) {
            const Event event = events_.top();
            events_.pop();
            now_ns_ = event.time_ns;
            if (now_ns_ > limit_ns) return "not ended in time: " + state();
            End& end = *ends_[event.to];
            if (event.datagram != nullptr) {
                end.take(*event.datagram, now_ns_);
            } else {
                look_after(event.to);
            }
            for (std::size_t i = 0; i < 2; ++i) {
                if (!ends_[i]->wrong.empty()) return ends_[i]->wrong;
                if (ends_[i]->send.acknowledged() > ends_[1 - i]->packets_done)
                    return "acknowledged before it was executed";
            }
        }
        return "";
    }
    std::uint64_t now_ns() const { return now_ns_; }
    std::uint64_t sent_again() const {
        return ends_[0]->send.retransmissions() + ends_[1]->send.retransmissions();
    }

private:
    struct Event {
        std::uint64_t time_ns, number;
        std::size_t to;
        std::shared_ptr<const Datagram> datagram;  ///< null: the end's timer goes off
        bool operator<(const Event& other) const {
            return time_ns != other.time_ns ? time_ns > other.time_ns : number > other.number;
        }
    };
    bool finished() const {
        for (std::size_t i = 0; i < 2; ++i) {
            if (ends_[i]->offered < weather_.records || !ends_[i]->send.empty()) return false;
        }
        return true;
    }
    std::string state() const {
        std::string text;
        for (const auto& end : ends_) {
            text += std::to_string(end->executed) + " executed, " +
                    std::to_string(end->send.acknowledged()) + " packets acknowledged; ";
        }
        return text;
    }
    void look_after(std::size_t self) {
        End& end = *ends_[self];
        if (end.send.outstanding() && now_ns_ >= end.send.deadline_ns())
            end.send.timed_out(now_ns_);
        end.compose(may_offer(self), random_);
        std::vector<std::shared_ptr<Datagram>> flight;
        for (std::uint64_t sequence = end.send.next_to_send(); sequence != 0;
             sequence = end.send.next_to_send()) {
            auto datagram = header_of(end);
            datagram->header.sequence = sequence;
            datagram->header.flags = end.send.wants_answer(sequence) ? wire::flag_answer_now : 0;
            const std::byte* const start = end.send.body(sequence);
            datagram->records.assign(start, start + end.send.body_bytes(sequence));
            end.send.sent(sequence, now_ns_);
            travel(1 - self, datagram);
            flight.push_back(std::move(datagram));
        }
        repeat_tail(self, flight);
        if (end.answer_now || (end.answer_soon && random_.happens(50))) {
            travel(1 - self, header_of(end));
        }
        std::uint64_t next = now_ns_ + 1 + random_.below(weather_.look_ns);
        if (random_.happens(weather_.stall)) next += weather_.stall_ns;
        events_.push({next, ++number_, self, nullptr});
    }
    /// Up to which record the end may go.
    std::uint64_t may_offer(std::size_t self) const {
        if (weather_.in_turns == 0) return weather_.records;
        const std::uint64_t turns = ends_[self]->executed / weather_.in_turns + (self == 0);
        return std::min(weather_.records, turns * weather_.in_turns);
    }
    void repeat_tail(std::size_t self, const std::vector<std::shared_ptr<Datagram>>& flight) {
        constexpr std::size_t tail_max = 4;
        SendWindow& send = ends_[self]->send;
        for (unsigned copy = 1; copy < (weather_.copies ? send.copies() : 1); ++copy) {
            for (std::size_t i = flight.size() - std::min(flight.size(), tail_max);
                 i < flight.size(); ++i) {
                send.repeated();
                travel(1 - self, flight[i]);
            }
        }
    }
    static std::shared_ptr<Datagram> header_of(End& end) {
        auto datagram = std::make_shared<Datagram>();
        end.receive.describe(datagram->header);
        end.answer_now = end.answer_soon = false;
        return datagram;
    }
    void travel(std::size_t to, std::shared_ptr<const Datagram> datagram) {
        const bool cut = now_ns_ - weather_.cut_at_ns < weather_.cut_ns;  // wraps before it
        if (cut || random_.happens(weather_.loss)) return;
        for (int times = random_.happens(weather_.duplicate) ? 2 : 1; times > 0; --times) {
            std::uint64_t ns = weather_.latency_ns + random_.below(weather_.jitter_ns + 1);
            if (random_.happens(weather_.reorder)) ns += random_.below(weather_.held_ns + 1);
            events_.push({now_ns_ + ns, ++number_, to, datagram});
        }
    }

    Wire weather_;
    Random random_;
    std::unique_ptr<End> ends_[2];
    std::priority_queue<Event> events_;
    std::uint64_t now_ns_ = 0, number_ = 0;
};

Wire drawn(Random& random) {
    Wire weather;
    weather.loss = static_cast<std::uint32_t>(random.below(40));
    weather.duplicate = static_cast<std::uint32_t>(random.below(30));
    weather.reorder = static_cast<std::uint32_t>(random.below(70));
    weather.latency_ns = 1 * us + random.below(random.happens(30) ? 5 * ms : 50 * us);
    weather.jitter_ns = random.below(weather.latency_ns + 1);
    weather.held_ns = random.below(random.happens(30) ? 20 * ms : 500 * us);
    if (random.happens(50)) {
        weather.cut_at_ns = random.below(3 * ms);
        weather.cut_ns = random.below(500 * ms);
    }
    weather.stall = random.happens(50) ? 5 : 0;
    weather.look_ns = 1 * us + random.below(50 * us);
    weather.datagram_bytes = random.happens(50) ? 1400 : 1100;
    weather.answers = random.happens(30);
    weather.records = 100 + random.below(1'500);
    return weather;
}

TEST(Windows, execute_every_record_once_and_in_order_on_any_wire) {
    const std::uint64_t runs = given_number("UDP_WINDOW_RUNS", 100),
                        first = given_number("UDP_WINDOW_SEED", 1);
    const Slots slots;
    std::uint64_t sent_again = 0;
    for (std::uint64_t seed = first; seed < first + runs; ++seed) {
        Random random{seed};
        Connection connection{slots, seed, drawn(random)};
        const std::string wrong = connection.run(60'000 * ms);
        ASSERT_EQ(wrong, "") << "replay with UDP_WINDOW_RUNS=1 UDP_WINDOW_SEED=" << seed;
        sent_again += connection.sent_again();
    }
    EXPECT_GT(sent_again, runs);  // the wires were bad
}

TEST(Windows, send_nothing_twice_on_a_good_wire) {
    const Slots slots;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Wire fair;
        fair.records = 3'000;
        Connection connection{slots, seed, fair};
        ASSERT_EQ(connection.run(1'000 * ms), "") << seed;
        EXPECT_EQ(connection.sent_again(), 0u) << seed;
    }
}

// What waits for an answer, a few packets at a time, has nothing that overtakes what was lost. Of
// datagrams one way 19 % are lost, 10 % doubled, 19 % held back, as HIROBA_UDP_LOSS=10,
// _DUPLICATE=5, _REORDER=10 have it at both ends.
TEST(Windows, take_less_than_twice_as_long_on_a_bad_wire) {
    const Slots slots;
    for (const std::uint64_t in_turns : {1, 4, 16}) {
        Wire weather;
        weather.latency_ns = 30 * us;
        weather.look_ns = 10 * us;
        weather.in_turns = in_turns;
        weather.records = 500 * in_turns;
        const auto seconds = [&](bool copies) {
            std::uint64_t all_ns = 0;
            weather.copies = copies;
            for (std::uint64_t seed = 1; seed <= 10; ++seed) {
                Connection connection{slots, seed, weather};
                EXPECT_EQ(connection.run(60'000 * ms), "") << seed;
                all_ns += connection.now_ns();
            }
            return static_cast<double>(all_ns) * 1e-9;
        };
        const double fair = seconds(true);
        weather.loss = weather.reorder = 19;
        weather.duplicate = 10;
        weather.held_ns = 200 * us;
        const double bad = seconds(true), alone = seconds(false);
        EXPECT_LT(bad, 2 * fair) << in_turns;
        EXPECT_GT(alone, 2 * fair) << in_turns << ": the wire was not bad enough to show anything";
    }
}

/// Room for one window, and packets of it that are composed and sent.
struct OneWindow {
    OneWindow() { window->open(slots.of(0), 1400); }
    void send(SendWindow::Content content, std::uint64_t now_ns) const {
        ASSERT_NE(window->take(64, content), nullptr);
        window->sent(window->next_to_send(), now_ns);
    }
    void acknowledge(std::uint64_t up_to, std::uint64_t now_ns) const {
        wire::DatagramHeader header;
        header.acknowledged = up_to;
        ASSERT_TRUE(window->acknowledge(header, now_ns));
    }
    Slots slots;
    std::unique_ptr<SendWindow> window = std::make_unique<SendWindow>();
};

TEST(Windows, give_answers_time_until_the_peer_asks_again) {
    const OneWindow one;
    SendWindow& window = *one.window;
    const auto work = SendWindow::Content::work, answer = SendWindow::Content::answer;
    one.send(work, 0);
    one.acknowledge(1, 20 * us);  // the round trip is known
    const std::uint64_t usual = window.retransmission_ns();
    ASSERT_LT(usual, answers_min_ns);
    one.send(answer, 1 * ms);
    EXPECT_EQ(window.deadline_ns(), 1 * ms + answers_min_ns);
    EXPECT_FALSE(window.answers_are_late(1 * ms + usual - 1));
    EXPECT_TRUE(window.answers_are_late(1 * ms + usual));
    // A request behind it has its own time.
    EXPECT_FALSE(window.has_work_under_way());
    one.send(work, 2 * ms);
    EXPECT_TRUE(window.has_work_under_way());
    EXPECT_EQ(window.deadline_ns(), 2 * ms + usual);
    one.acknowledge(3, 2 * ms + 30 * us);
    // An answer with something else in its packet is no answer alone.
    ASSERT_NE(window.take(64, answer), nullptr);
    ASSERT_NE(window.take(64, work), nullptr);
    window.sent(window.next_to_send(), 3 * ms);
    EXPECT_LT(window.deadline_ns(), 3 * ms + answers_min_ns);
    one.acknowledge(4, 3 * ms + 30 * us);
    // The peer waits.
    one.send(answer, 4 * ms);
    window.peer_asks_again();
    EXPECT_EQ(window.deadline_ns(), 4 * ms + retransmission_min_ns);
    one.acknowledge(5, 4 * ms + 30 * us);
    one.send(answer, 5 * ms);
    EXPECT_EQ(window.deadline_ns(), 5 * ms + answers_min_ns) << "it has got what it asked for";
    // The time of an answer says when the peer had something to send, not how far it is.
    const std::uint64_t before = window.retransmission_ns();
    one.acknowledge(6, 8 * ms);
    EXPECT_EQ(window.retransmission_ns(), before);
}

// A lost answer is asked for again after two round trips, and comes again then.
TEST(Windows, are_no_slower_where_answers_get_lost) {
    const Slots slots;
    Wire weather;
    weather.latency_ns = 30 * us;
    weather.look_ns = 10 * us;
    weather.in_turns = 1;
    weather.records = 2'000;
    weather.loss = 3;
    weather.copies = false;
    std::uint64_t took_ns[2] = {0, 0};
    for (const bool answers : {false, true}) {
        weather.answers = answers;
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            Connection connection{slots, seed, weather};
            EXPECT_EQ(connection.run(60'000 * ms), "") << seed;
            took_ns[answers] += connection.now_ns();
        }
    }
    EXPECT_LT(static_cast<double>(took_ns[1]), 1.3 * static_cast<double>(took_ns[0]));
}

TEST(PathLoss, is_what_the_peer_says_came) {
    PathLoss path;
    EXPECT_EQ(path.copies(), 1u);
    std::uint16_t came = 65'000;  // wraps
    path.arrived(came, true);
    for (int i = 0; i < 32; ++i) path.sent();
    for (int round = 0; round < 40; ++round) {
        for (int i = 0; i < 100; ++i) path.sent();
        came = static_cast<std::uint16_t>(came + 95);
        path.arrived(came, true);
    }
    EXPECT_NEAR(path.share(), 0.05, 0.001);
    EXPECT_EQ(path.copies(), 2u);
    for (int round = 0; round < 40; ++round) {
        for (int i = 0; i < 100; ++i) path.sent();
        came = static_cast<std::uint16_t>(came + 200);  // the network doubles
        path.arrived(came, true);
    }
    EXPECT_EQ(path.copies(), 1u);
    // A few more under way than usual say nothing, as long as others are.
    for (int i = 0; i < 1'000; ++i) path.sent();
    path.arrived(came, false);
    EXPECT_EQ(path.copies(), 1u);
}

// Silence is answered by packets 100 ms apart at the most, so that is how late the first may come.
TEST(Windows, go_on_within_the_longest_silence_after_a_cut) {
    const Slots slots;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Wire weather;
        weather.cut_at_ns = 30 * us;
        weather.records = 5'000;
        weather.cut_ns = 3'000 * ms;
        Connection connection{slots, seed, weather};
        ASSERT_EQ(
            connection.run(weather.cut_at_ns + weather.cut_ns + retransmission_max_ns + 20 * ms),
            "")
            << seed;
        EXPECT_GT(connection.now_ns(), weather.cut_ns) << seed;
    }
}

}  // namespace
}  // namespace hiroba::net::udp
