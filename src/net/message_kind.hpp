// SPDX-License-Identifier: BSD-3-Clause
// Role: what tells messages of one kind from those of others. net numbers its own; each layer above
// numbers its own behind those of the layer below (gas/messages.hpp, dsm, omp, abi), so that net
// knows none of them and no two share a number.
// Invariant: the numbers are the same on all nodes, which run one build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiroba::net {

/// Tag of a message; the receiver's handler table is indexed by it.
enum class MessageKind : std::uint8_t {
    active,      ///< active messages (net/async.hpp)
    collective,  ///< collectives where no peer is mapped
    kick,        ///< bytes that land where nothing is mapped
    mark,        ///< those of the barrier of all nodes
    departure,   ///< a node leaves, or another wants to know (net/departures.hpp)
    test,        ///< tests
};
inline constexpr MessageKind last_message = MessageKind::test;

/// So many kinds there can be.
inline constexpr std::size_t message_kinds_max = 32;

/// What a layer numbers its messages with: the first behind the last of the layer below, each
/// further one behind the one before it.
consteval MessageKind kind_after(MessageKind kind) {
    const auto next = static_cast<std::size_t>(kind) + 1;
    if (next >= message_kinds_max) throw "raise message_kinds_max";
    return static_cast<MessageKind>(next);
}

}  // namespace hiroba::net
