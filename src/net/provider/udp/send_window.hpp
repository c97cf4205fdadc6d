// SPDX-License-Identifier: BSD-3-Clause
// Role: the sending half of a connection: packets composed, sent, acknowledged, lost, sent again.
// Invariant: pure: it is told the time and does no I/O. Sequences count from 1; packets
// [first_, unsent_) are with the network or acknowledged selectively, [unsent_, next_) wait for
// the congestion window. A packet's bytes change only before it is first sent.
//
// Loss is found by what arrived later: a packet is lost when one sent after it was acknowledged
// and three more did overtake it (RFC 6675's threshold, RFC 8985's order by time), or when nothing
// was heard for the retransmission time (RFC 6298 with limits of 100 us and 100 ms). Who waits for
// an answer asks again by itself, so answers alone have more time. The window
// grows as in RFC 5681 and shrinks by 0.7 per round trip with a loss (RFC 9438's factor).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "net/provider/udp/path_loss.hpp"
#include "net/wire/datagram.hpp"

namespace hiroba::net::udp {

inline constexpr std::uint32_t window_packets = 64 * wire::selective_words_max;
inline constexpr std::size_t datagram_bytes_max = 16368;  ///< four make one call of the system
inline constexpr std::size_t datagram_bytes_min = 512;
inline constexpr std::size_t slot_bytes = 16384;
/// Under way to one peer at most: about what the processor's cache holds.
inline constexpr std::size_t window_bytes_max = std::size_t{512} << 10;
inline constexpr std::uint64_t retransmission_min_ns = 100'000;
inline constexpr std::uint64_t retransmission_max_ns = 100'000'000;
/// While nothing but answers is under way, and the peer does not ask again.
inline constexpr std::uint64_t answers_min_ns = 4'000'000;

/// Owned by the provider's latch.
class SendWindow {
public:
    /// @param memory  window_packets slots of slot_bytes; untouched pages cost nothing
    /// @param datagram_bytes  largest datagram the path takes, at most datagram_bytes_max
    void open(std::byte* memory, std::size_t datagram_bytes) noexcept;
    /// The path takes less, or more, from now on. What is composed keeps its size.
    void limit(std::size_t datagram_bytes) noexcept;

    // --- composing -------------------------------------------------------------------------------

    std::size_t body_bytes_max() const noexcept { return body_bytes_max_; }
    /// More than this would wait here for the congestion window, and grow cold meanwhile.
    bool wants_more() const noexcept {
        return next_ - unsent_ < 2 ||
               in_flight_ + static_cast<double>(next_ - unsent_) < congestion_;
    }
    std::uint32_t free_packets() const noexcept {
        return window_packets - static_cast<std::uint32_t>(next_ - first_);
    }
    /// The most bytes that one take() would give; 0 when that is less than `least`.
    std::size_t room(std::size_t least) const noexcept;
    /// A packet of nothing but answers is waited for at the other end only.
    enum class Content : std::uint8_t { work, answer };
    /// Room for `bytes` (a multiple of 8) in the last packet not yet sent, or in a new one; nullptr
    /// when the window is full.
    std::byte* take(std::size_t bytes, Content content = Content::work) noexcept;
    /// The sequence that carries what take() gave last.
    std::uint64_t last_composed() const noexcept { return next_ - 1; }

    // --- sending ---------------------------------------------------------------------------------

    /// The next packet to send within the congestion window, lost ones first; 0: none.
    std::uint64_t next_to_send() const noexcept;
    void sent(std::uint64_t sequence, std::uint64_t now_ns) noexcept;
    std::byte* body(std::uint64_t sequence) noexcept;
    std::size_t body_bytes(std::uint64_t sequence) const noexcept { return at(sequence).bytes; }
    /// How often a packet goes at once that no other follows.
    unsigned copies() const noexcept { return loss_.copies(); }
    /// One more copy went.
    void repeated() noexcept { loss_.sent(); }
    /// True when the sender will soon have nothing to do but wait for the acknowledgement.
    bool wants_answer(std::uint64_t sequence) const noexcept;

    // --- acknowledgement and time ----------------------------------------------------------------

    /// Takes what a datagram says. False when it speaks of packets never sent: nothing was done.
    bool acknowledge(const wire::DatagramHeader& header, std::uint64_t now_ns) noexcept;
    /// Every packet up to here was executed by the peer.
    std::uint64_t acknowledged() const noexcept { return first_ - 1; }
    /// Everything composed was executed by the peer.
    bool empty() const noexcept { return first_ == next_; }
    bool outstanding() const noexcept { return first_ != unsent_; }
    /// Composed and never sent.
    std::uint64_t unsent_packets() const noexcept { return next_ - unsent_; }

    /// When timed_out() is due; meaningful while outstanding().
    std::uint64_t deadline_ns() const noexcept;
    /// Nothing was heard in time: sends the oldest packet again as a probe; from the third time on
    /// takes everything under way for lost and shrinks the window. Backs off each time.
    /// @return whether this sent a probe, the first or the second of a silence
    bool timed_out(std::uint64_t now_ns) noexcept;

    /// Something that is no answer is under way.
    bool has_work_under_way() const noexcept { return last_work_ >= first_; }
    /// The peer has not said that it has the answers under way, for longer than one that polls
    /// would take: it computes.
    bool answers_are_late(std::uint64_t now_ns) const noexcept {
        return outstanding() && has_time() && now_ns - timer_from_ns_ >= retransmission_ns();
    }
    /// The peer has sent something again: it may be waiting for an answer that was lost. It has
    /// waited for its round trips already.
    void peer_asks_again() noexcept { asked_again_ = true; }

    std::uint64_t retransmissions() const noexcept { return retransmissions_; }
    std::uint64_t retransmission_ns() const noexcept;

private:
    struct Packet {
        std::uint64_t sent_ns = 0;
        std::uint32_t bytes = 0;
        std::uint16_t slot = 0;   ///< where its bytes are
        bool arrived = false;     ///< acknowledged selectively
        bool lost = false;        ///< to be sent again
        bool sent_again = false;  ///< tells nothing about the round trip (Karn)
        bool answers = true;      ///< and nothing else: acknowledged with what the peer sends next
    };
    Packet& at(std::uint64_t sequence) noexcept { return packets_[sequence % window_packets]; }
    const Packet& at(std::uint64_t sequence) const noexcept {
        return packets_[sequence % window_packets];
    }
    std::byte* start_of(std::uint16_t slot) const noexcept { return memory_ + slot * slot_bytes; }
    bool has_time() const noexcept;
    void leave_network(Packet& packet) noexcept;
    void find_losses() noexcept;
    void measured(std::uint64_t round_trip_ns) noexcept;

    std::array<Packet, window_packets> packets_{};
    /// The last given back is taken next: it is still in the cache.
    std::array<std::uint16_t, window_packets> free_slots_{};
    std::uint32_t free_slots_count_ = 0;
    std::byte* memory_ = nullptr;
    std::size_t body_bytes_max_ = 0;
    std::uint64_t first_ = 1;   ///< the oldest not acknowledged
    std::uint64_t unsent_ = 1;  ///< the first never sent
    std::uint64_t next_ = 1;    ///< the next to compose

    std::uint32_t in_flight_ = 0;
    std::uint32_t lost_ = 0;
    double congestion_ = 32;
    double congestion_max_ = window_packets;
    double slow_start_until_ = window_packets;
    std::uint64_t recovered_at_ = 0;       ///< losses up to here belong to one event
    std::uint64_t highest_arrived_ = 0;    ///< acknowledged in any way
    std::uint64_t last_work_ = 0;          ///< sent last of those that carry more than answers
    bool asked_again_ = false;             ///< by the peer, since something was acknowledged
    std::uint64_t latest_arrived_ns_ = 0;  ///< when the last sent of those that arrived was sent

    PathLoss loss_;
    std::uint64_t smoothed_ns_ = 0;
    std::uint64_t variation_ns_ = 0;
    std::uint64_t fastest_ns_ = ~std::uint64_t{0} / 2;
    std::uint64_t timer_from_ns_ = 0;
    std::uint32_t backoff_ = 0;
    std::uint64_t retransmissions_ = 0;
};

}  // namespace hiroba::net::udp
