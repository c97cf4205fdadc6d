// SPDX-License-Identifier: BSD-3-Clause
// Role: packets on their way to one node, which takes them when it can.
// Invariant: never blocks; order is kept; a descriptor closes with the last node that is to get it.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "net/bootstrap/control_packet.hpp"

namespace hiroba::tools {

/// A file descriptor that closes with its last owner.
using SharedDescriptor = std::shared_ptr<const int>;

/// Takes `fd` over; empty for -1.
SharedDescriptor share_descriptor(int fd);

/// One answer, which several nodes may be waiting for.
struct Answer {
    net::ControlHeader header;
    std::shared_ptr<const std::vector<std::byte>> body;  ///< may be empty
    SharedDescriptor fd;                                 ///< may be empty
};

class AnswerQueue {
public:
    bool empty() const { return answers_.empty(); }
    void push(Answer answer) { answers_.push_back(std::move(answer)); }
    void clear() { answers_.clear(); }
    /// Sends what `socket` takes.
    void give(int socket);

private:
    std::deque<Answer> answers_;
};

}  // namespace hiroba::tools
