// SPDX-License-Identifier: BSD-3-Clause
// Role: the receiving half of a connection: which packets were executed, which wait for their turn.
// Invariant: every packet is executed once and in order. A packet that comes early, or whose
// messages are not taken yet, is kept; it is acknowledged selectively, and with all before it
// only once it was executed: to the sender of a put, acknowledged means visible.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "net/provider/udp/send_window.hpp"

namespace hiroba::net::udp {

/// Owned by the provider's latch; the bytes of the front packet by the polling thread.
class ReceiveWindow {
public:
    /// @param memory  window_packets slots of slot_bytes
    void open(std::byte* memory) noexcept { memory_ = memory; }

    /// A datagram of the peer that carries a packet came, whatever its fate.
    void arrived() noexcept { ++arrived_; }

    enum class PacketFate : std::uint8_t { next, early, seen, beyond };
    /// What becomes of a packet: `next` to be executed, `early`, `seen` before, or `beyond` what
    /// any sender may send now.
    PacketFate fate_of(std::uint64_t sequence) const noexcept {
        if (sequence <= executed_) return PacketFate::seen;
        if (sequence > executed_ + window_packets) return PacketFate::beyond;
        if (bytes_[sequence % window_packets] != 0) return PacketFate::seen;
        return sequence == executed_ + 1 ? PacketFate::next : PacketFate::early;
    }

    void keep(std::uint64_t sequence, Bytes records) noexcept {
        std::memcpy(slot(sequence), records.data(), records.size());
        bytes_[sequence % window_packets] = static_cast<std::uint32_t>(records.size());
        if (sequence > highest_) highest_ = sequence;
    }
    /// The kept packet whose turn it is; empty when it has not come.
    Bytes front() const noexcept {
        const std::uint64_t sequence = executed_ + 1;
        return {slot(sequence), bytes_[sequence % window_packets]};
    }
    /// The front packet, kept or not, is done.
    void executed() noexcept { bytes_[++executed_ % window_packets] = 0; }

    /// Fills in what the sender should know.
    void describe(wire::DatagramHeader& header) const noexcept {
        header.acknowledged = executed_;
        header.arrived = arrived_;
        if (highest_ <= executed_) return;
        for (std::uint64_t sequence = executed_ + 1; sequence <= highest_; ++sequence) {
            if (bytes_[sequence % window_packets] == 0) continue;
            const std::uint64_t bit = sequence - executed_ - 1;
            header.selective[bit / 64] |= std::uint64_t{1} << (bit % 64);
            header.selective_words = static_cast<std::uint8_t>(bit / 64 + 1);
        }
    }

private:
    std::byte* slot(std::uint64_t sequence) const noexcept {
        return memory_ + sequence % window_packets * slot_bytes;
    }
    std::byte* memory_ = nullptr;
    std::uint64_t executed_ = 0;
    std::uint16_t arrived_ = 0;
    std::uint64_t highest_ = 0;                          ///< kept
    std::array<std::uint32_t, window_packets> bytes_{};  ///< of what is kept; 0: nothing
};

}  // namespace hiroba::net::udp
