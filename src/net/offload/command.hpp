// SPDX-License-Identifier: BSD-3-Clause
// Role: one request as it travels from the thread that makes it to the one that hands it to the
// provider. Invariant: checked before it was made; addresses are resolved, so that the executor
// looks nothing up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net {

/// How a request ended. `peer_lost`: whether it happened is unknown.
enum class Outcome : std::uint8_t { done, peer_lost };

/// Runs once when a request is complete, on whichever thread finds out, perhaps at the same time as
/// others. May make requests, never wait. Without a function nothing runs.
struct Callback {
    void (*function)(void* data, Outcome outcome) noexcept = nullptr;
    void* data = nullptr;
};

}  // namespace hiroba::net

namespace hiroba::net::offload {

inline constexpr std::size_t arguments_max = 6;

struct Command {
    Work::Kind kind{};
    AtomicOp op{};
    std::uint8_t width = 0;  ///< of an atomic: 4 or 8
    std::uint8_t message = 0;
    std::uint8_t arguments_count = 0;
    Urgency urgency{};
    NodeId peer{};
    RegionId region{};
    std::uint32_t reserved = 0;
    std::uint64_t offset = 0;
    std::byte* local = nullptr;  ///< read into, written from; where an atomic's old value goes
    std::size_t bytes = 0;
    Callback on_complete{};
    /// Of a message; of an atomic: operand, expected.
    std::uint64_t arguments[arguments_max] = {};

    std::uint64_t operand() const noexcept { return arguments[0]; }
    std::uint64_t expected() const noexcept { return arguments[1]; }
};
static_assert(sizeof(Command) <= 112, "an element of the queue is two cache lines");

}  // namespace hiroba::net::offload
