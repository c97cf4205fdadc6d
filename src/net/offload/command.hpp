// SPDX-License-Identifier: BSD-3-Clause
// Role: one request as it travels from the thread that makes it to the one that hands it to the
// provider. Invariant: checked before it was made; addresses are resolved, so that the executor
// looks nothing up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/ids.hpp"
#include "hiroba/net_requests.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net::offload {

inline constexpr std::size_t arguments_max = MessageParams::arguments_max;

/// Initializes nothing: whoever makes one sets what its kind has. All but the arguments share a
/// cache line with the queue's own word, so that reads and writes touch one line of the queue.
struct Command {
    Work::Kind kind;
    AtomicOp op;
    std::uint8_t width;  ///< of an atomic: 4 or 8
    std::uint8_t message;
    std::uint8_t arguments_count;
    Urgency urgency;
    NodeId peer;
    RegionId region;
    std::uint64_t offset;
    std::byte* local;  ///< read into, written from; where an atomic's old value goes
    std::size_t bytes;
    Completion on_complete;
    /// The words of a message; of an atomic: operand, expected.
    std::uint64_t arguments[arguments_max];

    std::uint64_t operand() const noexcept { return arguments[0]; }
    std::uint64_t expected() const noexcept { return arguments[1]; }

    /// Copies what `from`'s kind has.
    void assign(const Command& from) noexcept {
        std::memcpy(static_cast<void*>(this), &from, offsetof(Command, arguments));
        if (from.kind == Work::Kind::atomic || from.kind == Work::Kind::send) {
            std::memcpy(arguments, from.arguments, sizeof arguments);
        }
    }
};
static_assert(offsetof(Command, arguments) == 56 && sizeof(Command) <= 112);

}  // namespace hiroba::net::offload
