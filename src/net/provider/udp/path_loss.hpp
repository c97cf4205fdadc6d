// SPDX-License-Identifier: BSD-3-Clause
// Role: how much of what is sent to a peer gets lost, and so how often a datagram goes that nothing
// follows: its loss shows by silence alone, which costs many round trips. Sent twice or three times
// at once it is rarely lost (Flach et al., Reducing Web Latency, SIGCOMM 2013, "proactive").
// Invariant: pure. The peer tells how many datagrams came, copies among them, modulo 2^16; what it
// says of a time when much was under way is averaged with the rest.
#pragma once

#include <cstdint>

namespace hiroba::net::udp {

/// Owned by the provider's latch.
class PathLoss {
public:
    void sent() noexcept { ++sent_; }
    /// @param count  datagrams that had come to the peer when it said so
    /// @param all  nothing more is under way
    void arrived(std::uint16_t count, bool all) noexcept {
        const std::uint32_t sent = sent_ - sent_before_;
        if (sent < (all ? least_sample : least_sample_under_way)) return;
        const auto came = static_cast<std::uint16_t>(count - came_before_);
        const double lost = came >= sent ? 0 : 1 - static_cast<double>(came) / sent;
        share_ += (lost - share_) / (measured_ ? 4 : 1);
        measured_ = true;
        sent_before_ = sent_;
        came_before_ = count;
    }
    double share() const noexcept { return share_; }
    /// How often to send what nothing follows: 1 on a path that loses next to nothing.
    unsigned copies() const noexcept {
        if (share_ < 0.02) return 1;
        return share_ < 0.08 ? 2 : 3;
    }

private:
    static constexpr std::uint32_t least_sample = 32;
    /// More than 4 times what may be under way, and less than the count can tell.
    static constexpr std::uint32_t least_sample_under_way = 1024;
    std::uint32_t sent_ = 0, sent_before_ = 0;
    std::uint16_t came_before_ = 0;
    double share_ = 0;
    bool measured_ = false;
};

}  // namespace hiroba::net::udp
