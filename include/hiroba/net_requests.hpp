// SPDX-License-Identifier: BSD-3-Clause
// Role: what a request of the communication layer says: both ends, the bytes, and the function to
// call when it is over. Plain values.
// Source: Endo & Taura, low-level communication layer, section 3.1.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hiroba/ids.hpp"

namespace hiroba::net {

/// Registered memory; Network::allocate() and register_local() make them. Never reused. One that
/// nobody gave a value names no memory.
struct Handle {
    static constexpr std::uint32_t none = 0xffff'ffffu;
    std::uint32_t value = none;
};

/// A place in registered memory of another node; `offset` in bytes. Move within the memory by
/// changing `offset`. Source: section 3.1, addresses wider than a pointer.
struct RemoteAddress {
    Handle handle{};
    std::uint64_t offset = 0;
};
/// A place in registered memory of this node; `offset` in bytes.
struct LocalAddress {
    Handle handle{};
    std::uint64_t offset = 0;
};

/// `accepted`: the callback will run, or has run. `again`: a queue is full, nothing was done; try
/// later. `refused`: an argument is wrong, nothing was done; Network::why_refused() says which.
enum class Submission : std::uint8_t { accepted, again, refused };

/// How a request ended. `peer_lost`: whether it happened is unknown.
enum class Outcome : std::uint8_t { done, peer_lost };

/// Runs once when a request is complete, on whichever thread finds out, perhaps at the same time as
/// others and before the request's call returns. It may make requests, never wait. Without a
/// function nothing runs. Source: section 3.1, {f, d}.
struct Callback {
    void (*function)(void* data, Outcome outcome) noexcept = nullptr;
    void* data = nullptr;
    /// The network adds 1 to it before an accepted request can end; `function` takes 1 off. A
    /// request that is not accepted leaves it as it was. nullptr: nobody counts.
    std::atomic<std::uint32_t>* under_way = nullptr;
};

/// Reads `bytes` bytes (from 0) of another node. Bytes written meanwhile may be old or new. `to` is
/// borrowed and must not be looked at before the callback.
struct ReadParams {
    NodeId source{};
    RemoteAddress from{};
    LocalAddress to{};
    std::size_t bytes = 0;
    Callback on_complete{};
};
/// Writes `bytes` bytes (from 0) to another node. `from` is borrowed until the callback, which says
/// that the bytes are visible at the target. Two writes may land in any order.
struct WriteParams {
    NodeId target{};
    LocalAddress from{};
    RemoteAddress to{};
    std::size_t bytes = 0;
    Callback on_complete{};
};

enum class AtomicOp : std::uint8_t {
    fetch_add,
    fetch_and,
    fetch_or,
    fetch_xor,
    swap,
    compare_swap
};

/// Sequentially consistent, of 4 or 8 bytes at an aligned offset, atomic against every other one of
/// any width that covers the bytes.
struct AtomicParams {
    NodeId target{};
    RemoteAddress at{};
    AtomicOp op{};
    std::uint32_t bytes = 8;     ///< 4 or 8
    std::uint64_t operand = 0;   ///< the low 4 bytes, or all
    std::uint64_t expected = 0;  ///< of compare_swap
    LocalAddress old{};          ///< where the value before goes, before the callback; {}: nowhere
    Callback on_complete{};
};

/// Names a handler of active messages, the same on every node: 0 to count - 1.
struct ActiveId {
    std::uint8_t value = 0;
    static constexpr std::uint32_t count = 64;
};
/// Runs on whichever thread polls at the target, one at a time on each node. Everything is borrowed
/// until it returns. It may make requests; it must not wait for another node.
using ActiveHandler = void (*)(void* context, NodeId from, std::span<const std::uint64_t> arguments,
                               std::span<const std::byte> payload) noexcept;

/// Whether a sleeping service thread of the target is woken (about 40 us) or only its waiters.
enum class Urgency : std::uint8_t { when_polled, wake_service };

/// Short with arguments alone, medium with a payload. The payload is borrowed until the callback,
/// which says that it has left: not that the handler has run. Each message comes once. Two may
/// overtake each other, also of one thread to one node: one may pass through a command queue that
/// the next does not take (Offload::automatic).
struct MessageParams {
    NodeId target{};
    ActiveId id{};
    std::span<const std::uint64_t> arguments{};  ///< up to arguments_max, copied
    LocalAddress payload{};                      ///< ignored when payload_bytes is 0
    std::size_t payload_bytes = 0;               ///< up to Network::payload_bytes_max()
    Urgency urgency = Urgency::wake_service;
    Callback on_complete{};
    static constexpr std::size_t arguments_max = 6;
};

/// A call of a foreign library that may not run beside the layer's own calls, nor beside
/// another such call. It always runs on the node's communication thread, so a library that belongs
/// to one thread (MPI_THREAD_FUNNELED) may be used so. It may make requests; while it runs the node
/// neither polls nor answers, so it should be short and must not wait for another node's use of
/// this layer. Source: section 4.1, MPI calls put into the command queue.
struct CallParams {
    void (*function)(void* data) noexcept = nullptr;
    void* data = nullptr;
    Callback on_complete{};  ///< runs after it, on the same thread
};

}  // namespace hiroba::net
