// SPDX-License-Identifier: BSD-3-Clause
// Role: the floors of providers between hosts: raw UDP sockets, busily polled, with nothing that
// makes them reliable. One that is lost is given up after a tenth of a second, and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/perf/floors.hpp"

namespace hiroba::tools::perf_parts {

std::unique_ptr<PingPong> make_datagram_ping_pong(Rig& rig, std::size_t there_bytes,
                                                  std::size_t back_bytes);
/// Here a thread of the partner's own answers, which sleeps in between; the partner's calling
/// thread is free. follow() has nothing to do. Lives no longer than the rig.
std::unique_ptr<PingPong> make_sleeping_ping_pong(Rig& rig, std::size_t there_bytes,
                                                  std::size_t back_bytes);
std::unique_ptr<RawExchange> make_datagram_exchange(Rig& rig, std::size_t bytes);

/// One-way: the leader streams, its partner takes all of it. Collective.
class DatagramStream {
public:
    virtual ~DatagramStream() = default;
    /// @return after `bytes` were sent, or as many datagrams received as got through
    virtual void lead(std::size_t bytes) = 0;
    virtual void follow(std::size_t bytes) = 0;
};
/// `authenticated`: the sender computes for each segment what provider udp does for each of its
/// datagrams, and the receiver checks it.
enum class Content : std::uint8_t { plain, authenticated };
std::unique_ptr<DatagramStream> make_datagram_stream(Rig& rig, Content content);

}  // namespace hiroba::tools::perf_parts
