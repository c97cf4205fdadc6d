// SPDX-License-Identifier: BSD-3-Clause
// Role: see call_check.hpp.
#include "net/call_check.hpp"

#include <mutex>

#include "base/fatal.hpp"

namespace hiroba::net {

std::string describe(const Call& call) {
    const std::string bytes = std::to_string(call.bytes) + " bytes";
    switch (call.kind) {
        case Call::Kind::barrier: return "is in a barrier";
        case Call::Kind::broadcast:
            return "is in a broadcast of " + bytes + " from node " + std::to_string(call.detail);
        case Call::Kind::all_gather: return "is in an all-gather of " + bytes + " a node";
        case Call::Kind::all_to_all: return "is in an all-to-all of pieces of " + bytes;
        case Call::Kind::all_reduce:
            return "is in an all-reduce of " + bytes + ", " + std::to_string(call.detail) +
                   " a value";
        case Call::Kind::leave: return "left: its network is being destroyed";
        case Call::Kind::none: break;
    }
    return "is in no collective";
}

void refuse_unequal_calls(std::uint64_t number, NodeId one, const Call& of_one, NodeId other,
                          const Call& of_other) noexcept {
    fatal(
        "collective call number %lu: node %u %s, while node %u %s; every node makes the same calls "
        "in the same order with equal sizes",
        number, one.value, describe(of_one).c_str(), other.value, describe(of_other).c_str());
}

void CallReferee::take(NodeId from, std::uint64_t number, const Call& call) noexcept {
    const std::scoped_lock guard{latch_};
    if (number == number_ && call != call_) refuse_unequal_calls(number, from, call, from_, call_);
    if (number <= number_) return;
    number_ = number;
    from_ = from;
    call_ = call;
}

}  // namespace hiroba::net
