// SPDX-License-Identifier: BSD-3-Clause
// Role: what lies where in a node's shared memory: one memfd, mapped whole by every node of the
// job.
//
//   [ControlPage] [one queue per sender: RingControl page + ring_bytes] ... [regions, whole pages]
//
// Invariant: offsets are the same in every node's memory. The owner constructs the control objects
// before it hands out the descriptor, so whoever maps the memory finds them alive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace hiroba::net::shm {

inline constexpr std::uint64_t layout_version = 3;
inline constexpr std::size_t ring_bytes = std::size_t{256} << 10;        // a power of two
inline constexpr std::size_t message_bytes_max = std::size_t{64} << 10;  // a quarter of the ring
inline constexpr std::size_t record_unit_bytes = cache_line_bytes;

/// Where threads of one node sleep. `rings` is the futex word; memory order: doorbell.hpp.
struct alignas(cache_line_bytes) Bell {
    std::atomic<std::uint32_t> rings{0};     ///< counts wake-ups
    std::atomic<std::uint32_t> sleepers{0};  ///< threads asleep or about to be
};

/// The first page of a node's memory.
struct ControlPage {
    Bell waiters;
    Bell service;
};

/// Positions of one queue in bytes since the start; they never wrap, the place is modulo
/// ring_bytes.
struct RingControl {
    alignas(cache_line_bytes) std::atomic<std::uint64_t> tail{0};  ///< written by the sender
    alignas(cache_line_bytes) std::atomic<std::uint64_t> head{0};  ///< given back by the receiver
    /// Delivered by the receiver; its own threads alone look.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> delivered{0};
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(ControlPage) <= page_bytes && sizeof(RingControl) <= page_bytes);

constexpr std::size_t ring_control_offset(std::uint32_t sender) {
    return page_bytes + sender * (page_bytes + ring_bytes);
}
constexpr std::size_t ring_data_offset(std::uint32_t sender) {
    return ring_control_offset(sender) + page_bytes;
}
constexpr std::size_t regions_offset(std::uint32_t nodes) { return ring_control_offset(nodes); }

}  // namespace hiroba::net::shm
