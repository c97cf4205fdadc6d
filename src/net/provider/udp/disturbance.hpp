// SPDX-License-Identifier: BSD-3-Clause
// Role: the bad network of tests: datagrams are lost, doubled and held back, seeded, just above
// the socket and below everything that must cope with it (settings HIROBA_UDP_*).
// Invariant: memory is mapped once; when nowhere is room to hold a datagram back, it is not.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "net/provider/udp/send_window.hpp"

namespace hiroba::net::udp {

/// What happens to a datagram, in percent; delay in nanoseconds.
struct Weather {
    std::uint32_t loss = 0;
    std::uint32_t duplicate = 0;
    std::uint32_t reorder = 0;  ///< held back for up to `delay_ns`
    std::uint64_t delay_ns = 0;
    std::uint64_t seed = 0;

    bool fair() const noexcept { return loss == 0 && duplicate == 0 && reorder == 0; }
};

/// From the settings; a percentage above 100 is a usage error.
Result<Weather> read_weather();

/// One direction of one node. Owned by the provider's latch.
class Disturbance {
public:
    Disturbance() = default;
    Disturbance(const Disturbance&) = delete;
    ~Disturbance();
    Result<void> open(const Weather& weather, std::uint64_t stream);
    bool on() const noexcept { return memory_ != nullptr; }

    /// How often to pass `datagram` on now: 0 (lost or held back), 1 or 2.
    /// @param tag  comes back with the datagram from release()
    int treat(Bytes datagram, std::uint64_t tag, std::uint64_t now_ns) noexcept;
    /// When the next held datagram is due; ~0: none is held.
    std::uint64_t due_ns() const noexcept { return due_ns_; }
    /// Takes one datagram that is due; empty when there is none. Valid until the next
    /// call of release().
    MutableBytes release(std::uint64_t now_ns, std::uint64_t& tag) noexcept;

private:
    static constexpr std::size_t held_max = 256;
    struct Held {
        std::uint64_t due_ns = 0;
        std::uint64_t tag = 0;
        std::uint32_t bytes = 0;  ///< 0: free
    };
    std::uint64_t random() noexcept;
    bool happens(std::uint32_t percent) noexcept { return random() % 100 < percent; }
    void find_due() noexcept;

    Weather weather_;
    std::uint64_t state_ = 0;
    std::byte* memory_ = nullptr;
    std::array<Held, held_max> held_{};
    std::uint64_t due_ns_ = ~std::uint64_t{0};
};

}  // namespace hiroba::net::udp
