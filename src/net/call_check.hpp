// SPDX-License-Identifier: BSD-3-Clause
// Role: tells a program whose nodes call different collectives, or the same ones of unequal sizes,
// where they would wait for ever or get wrong values.
//
// Nodes that exchange data see each other's calls at once (collectives.cpp). Nodes that wait in
// barriers see nothing: one that has waited for a second reports its call to node 0, which compares
// the calls of equal number. Invariant: calls of equal number are equal in a program that is right.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.hpp"
#include "base/latch.hpp"

namespace hiroba::net {

/// What is equal on every node in one call of a collective.
struct Call {
    enum class Kind : std::uint32_t {
        none,
        barrier,
        broadcast,
        all_gather,
        all_to_all,
        all_reduce,
        leave
    };
    Kind kind = Kind::none;
    std::uint32_t detail = 0;  ///< root of a broadcast; bytes of one value of an all-reduce
    std::uint64_t bytes = 0;   ///< of the data, of one node's part, or of a piece
    bool operator==(const Call&) const = default;
};

/// "is in a broadcast of 8 bytes from node 1".
std::string describe(const Call& call);

/// Ends the process with a line that has both calls, the `number`-th of each node.
[[noreturn]] void refuse_unequal_calls(std::uint64_t number, NodeId one, const Call& of_one,
                                       NodeId other, const Call& of_other) noexcept;

/// Node 0's comparison. Thread: any.
class CallReferee {
public:
    /// `from` has waited in its `number`-th call. Ends the process if another node's differs.
    void take(NodeId from, std::uint64_t number, const Call& call) noexcept;

private:
    Latch latch_;
    std::uint64_t number_ = 0;  ///< the highest that was reported, by `from_`
    NodeId from_;
    Call call_;
};

}  // namespace hiroba::net
