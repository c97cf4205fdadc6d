// SPDX-License-Identifier: BSD-3-Clause
// Role: see send_window.hpp.
#include "net/provider/udp/send_window.hpp"

#include <algorithm>

namespace hiroba::net::udp {
namespace {

constexpr double congestion_min = 4;
constexpr double decrease = 0.7;
constexpr std::uint64_t overtaken_max = 3;
constexpr std::uint32_t probes = 2;                  // timeouts that send one packet only
constexpr std::uint64_t first_guess_ns = 1'000'000;  // before any round trip was measured

}  // namespace

void SendWindow::open(std::byte* memory, std::size_t datagram_bytes) noexcept {
    memory_ = memory;
    limit(datagram_bytes);
    while (free_slots_count_ < window_packets) {
        free_slots_[free_slots_count_] = static_cast<std::uint16_t>(free_slots_count_);
        ++free_slots_count_;
    }
}

void SendWindow::limit(std::size_t datagram_bytes) noexcept {
    body_bytes_max_ = round_down(datagram_bytes - wire::header_bytes_max, 8);
    const std::size_t fitting = window_bytes_max / datagram_bytes;
    congestion_max_ = std::min<double>(window_packets, static_cast<double>(fitting));
}

// --- composing -----------------------------------------------------------------------------------

std::size_t SendWindow::room(std::size_t least) const noexcept {
    if (next_ != unsent_) {
        // The last one may be larger than any is now: limit().
        const std::size_t taken = std::min<std::size_t>(at(next_ - 1).bytes, body_bytes_max_);
        if (body_bytes_max_ - taken >= least) return body_bytes_max_ - taken;
    }
    return free_packets() != 0 && least <= body_bytes_max_ ? body_bytes_max_ : 0;
}

std::byte* SendWindow::take(std::size_t bytes, Content content) noexcept {
    if (next_ == unsent_ || at(next_ - 1).bytes + bytes > body_bytes_max_) {
        if (free_packets() == 0 || bytes > body_bytes_max_) return nullptr;
        at(next_) = Packet{};
        at(next_).slot = free_slots_[--free_slots_count_];
        ++next_;
    }
    Packet& packet = at(next_ - 1);
    std::byte* const start = body(next_ - 1) + packet.bytes;
    packet.bytes += static_cast<std::uint32_t>(bytes);
    packet.answers &= content == Content::answer;
    return start;
}

std::byte* SendWindow::body(std::uint64_t sequence) noexcept {
    return start_of(at(sequence).slot) + wire::header_bytes_max;
}

// --- sending -------------------------------------------------------------------------------------

std::uint64_t SendWindow::next_to_send() const noexcept {
    if (in_flight_ >= congestion_) return 0;
    if (lost_ != 0) {
        for (std::uint64_t sequence = first_; sequence != unsent_; ++sequence) {
            if (at(sequence).lost) return sequence;
        }
    }
    return unsent_ != next_ ? unsent_ : 0;
}

void SendWindow::sent(std::uint64_t sequence, std::uint64_t now_ns) noexcept {
    Packet& packet = at(sequence);
    if (packet.lost) {
        packet.lost = false;
        packet.sent_again = true;
        --lost_;
        ++retransmissions_;
    } else {
        ++unsent_;
    }
    loss_.sent();
    // The time runs from the last acknowledgement, or from when the network was empty, but for
    // answers.
    const bool first_work = !packet.answers && !has_work_under_way();
    if (in_flight_++ == 0 || first_work) timer_from_ns_ = now_ns;
    if (!packet.answers) last_work_ = std::max(last_work_, sequence);
    packet.sent_ns = now_ns;
}

bool SendWindow::wants_answer(std::uint64_t sequence) const noexcept {
    const Packet& packet = at(sequence);
    return packet.lost || packet.sent_again || free_packets() < window_packets / 2 ||
           in_flight_ + 1 >= congestion_;
}

// --- acknowledgement and time --------------------------------------------------------------------

bool SendWindow::acknowledge(const wire::DatagramHeader& header, std::uint64_t now_ns) noexcept {
    if (header.acknowledged >= unsent_) return false;
    std::uint32_t new_arrivals = 0;
    std::uint64_t latest = 0;
    for (; first_ <= header.acknowledged; ++first_) {
        Packet& packet = at(first_);
        ++new_arrivals;
        if (!packet.arrived) {
            leave_network(packet);
            latest = first_;
        }
        highest_arrived_ = std::max(highest_arrived_, first_);
        free_slots_[free_slots_count_++] = packet.slot;
    }
    const std::uint64_t bits = std::uint64_t{64} * header.selective_words;
    for (std::uint64_t i = 0; i < bits; ++i) {
        if ((header.selective[i / 64] >> (i % 64) & 1) == 0) continue;
        const std::uint64_t sequence = header.acknowledged + 1 + i;
        if (sequence < first_ || sequence >= unsent_ || at(sequence).arrived) continue;
        ++new_arrivals;
        leave_network(at(sequence));
        at(sequence).arrived = true;
        latest = std::max(latest, sequence);
        highest_arrived_ = std::max(highest_arrived_, sequence);
    }
    if (new_arrivals == 0) return true;
    loss_.arrived(header.arrived, in_flight_ == 0 && lost_ == 0);
    // Only the latest tells of the round trip: the acknowledgement of earlier ones may be the
    // second that was sent. That of an answer waits for what the peer sends next.
    const Packet& last = at(latest);
    if (latest != 0 && !last.sent_again && !last.answers) measured(now_ns - last.sent_ns);
    timer_from_ns_ = now_ns;
    backoff_ = 0;
    asked_again_ = false;
    congestion_ += congestion_ < slow_start_until_ ? new_arrivals : new_arrivals / congestion_;
    congestion_ = std::min(congestion_, congestion_max_);
    find_losses();
    return true;
}

/// A packet that was under way, or taken for lost, has arrived.
void SendWindow::leave_network(Packet& packet) noexcept {
    if (packet.lost) {
        packet.lost = false;
        --lost_;
    } else {
        --in_flight_;
    }
    latest_arrived_ns_ = std::max(latest_arrived_ns_, packet.sent_ns);
}

void SendWindow::find_losses() noexcept {
    const std::uint64_t patience_ns = smoothed_ns_ / 4;
    for (std::uint64_t sequence = first_; sequence + overtaken_max <= highest_arrived_;
         ++sequence) {
        Packet& packet = at(sequence);
        if (packet.arrived || packet.lost) continue;
        const std::uint64_t sent_ns = packet.sent_ns + (packet.sent_again ? patience_ns : 0);
        if (sent_ns > latest_arrived_ns_) continue;
        packet.lost = true;
        ++lost_;
        --in_flight_;
        if (sequence <= recovered_at_) continue;
        recovered_at_ = unsent_ - 1;
        congestion_ = std::max(congestion_ * decrease, congestion_min);
        slow_start_until_ = congestion_;
    }
}

void SendWindow::measured(std::uint64_t round_trip_ns) noexcept {
    fastest_ns_ = std::min(fastest_ns_, round_trip_ns);
    if (smoothed_ns_ == 0) {
        smoothed_ns_ = round_trip_ns;
        variation_ns_ = round_trip_ns / 2;
        return;
    }
    const std::uint64_t off =
        round_trip_ns > smoothed_ns_ ? round_trip_ns - smoothed_ns_ : smoothed_ns_ - round_trip_ns;
    variation_ns_ = (3 * variation_ns_ + off) / 4;
    smoothed_ns_ = (7 * smoothed_ns_ + round_trip_ns) / 8;
}

std::uint64_t SendWindow::retransmission_ns() const noexcept {
    std::uint64_t once = smoothed_ns_ == 0 ? first_guess_ns : smoothed_ns_ + 4 * variation_ns_;
    // A probe is cheap. Where answers take very different times, as on nodes without a core each,
    // the variation would have each loss cost many round trips (RFC 8985, section 7.2).
    if (backoff_ == 0 && smoothed_ns_ != 0) once = std::min(once, 2 * smoothed_ns_);
    const std::uint64_t limited = std::clamp(once, retransmission_min_ns, retransmission_max_ns);
    return std::min(limited << std::min(backoff_, 10u), retransmission_max_ns);
}

/// Whether nobody waits for what is under way but the peer, which would ask for it again.
bool SendWindow::has_time() const noexcept {
    const bool in_order = highest_arrived_ < first_ && lost_ == 0;
    return !has_work_under_way() && in_order && backoff_ == 0;
}

std::uint64_t SendWindow::deadline_ns() const noexcept {
    const std::uint64_t usual = retransmission_ns();
    if (asked_again_ && !has_work_under_way())
        return timer_from_ns_ + std::min(usual, retransmission_min_ns);
    return timer_from_ns_ + (has_time() ? std::max(usual, answers_min_ns) : usual);
}

bool SendWindow::timed_out(std::uint64_t now_ns) noexcept {
    bool any = false;
    for (std::uint64_t sequence = first_; sequence != unsent_; ++sequence) {
        Packet& packet = at(sequence);
        if (packet.arrived) continue;
        any = true;
        if (packet.lost) continue;
        packet.lost = true;
        ++lost_;
        --in_flight_;
        if (backoff_ < probes) break;
    }
    // All have arrived but none was executed yet, or its acknowledgement got lost: ask with one.
    if (!any && outstanding()) {
        at(first_).arrived = false;
        at(first_).lost = true;
        ++lost_;
    }
    timer_from_ns_ = now_ns;
    asked_again_ = false;
    if (backoff_++ < probes) return true;
    recovered_at_ = unsent_ - 1;
    slow_start_until_ = std::max(congestion_ * decrease, congestion_min);
    congestion_ = congestion_min;
    return false;
}

}  // namespace hiroba::net::udp
