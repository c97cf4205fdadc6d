// SPDX-License-Identifier: BSD-3-Clause
#include "abi/face/program_calls.hpp"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "base/fatal.hpp"

namespace hiroba {
namespace {

/// How long the other nodes leave it to one node to say the line. It ends the job.
constexpr unsigned silent_us = 1'000'000;

std::string text_of(const CollectiveCall& call) {
    switch (call.kind) {
        case CollectiveCall::Kind::barrier: return "barrier()";
        case CollectiveCall::Kind::all_gather: return "all_gather() or all_reduce()";
        case CollectiveCall::Kind::broadcast:
            return "broadcast() from node " + std::to_string(call.root);
        case CollectiveCall::Kind::leave: return "the end of its SharedMemory";
    }
    return "?";
}

/// Differs for the threads of this process that live at the same time.
const void* this_thread_mark() noexcept {
    thread_local const char mark = 0;
    return &mark;
}

}  // namespace

void check_collective_calls(std::uint32_t self,
                            std::span<const dsm::NewsBarrier::Word> words) noexcept {
    for (std::uint32_t node = 1; node < words.size(); ++node) {
        if (words[node].call == words[0].call) [[likely]]
            continue;
        if (self != node) ::usleep(silent_us);
        die(exit_program,
            "collective calls differ: node 0 is in %s, node %u in %s. All nodes make the same "
            "calls in the same order",
            text_of(CollectiveCall::unpack(words[0].call)).c_str(), node,
            text_of(CollectiveCall::unpack(words[node].call)).c_str());
    }
}

void HeldLocks::before_lock(std::uint64_t key) noexcept {
    const void* const thread = this_thread_mark();
    const std::scoped_lock guard{latch_};
    const bool is_mine = std::ranges::any_of(
        held_, [&](const Held& held) { return held.key == key && held.thread == thread; });
    if (is_mine) {
        die(exit_program,
            "lock(0x%lx): this thread holds the lock already and would wait for itself", key);
    }
}

void HeldLocks::locked(std::uint64_t key) noexcept {
    const std::scoped_lock guard{latch_};
    held_.push_back({key, this_thread_mark()});
}

void HeldLocks::before_unlock(std::uint64_t key) noexcept {
    const std::scoped_lock guard{latch_};
    const auto found = std::find_if(held_.rbegin(), held_.rend(),
                                    [&](const Held& held) { return held.key == key; });
    if (found == held_.rend()) {
        die(exit_program,
            "unlock(0x%lx): no thread of this node holds the lock; the node that locked unlocks",
            key);
    }
    *found = held_.back();
    held_.pop_back();
}

void HeldLocks::before_leaving() noexcept {
    const std::scoped_lock guard{latch_};
    if (held_.empty()) return;
    die(exit_program, "this node leaves with the lock 0x%lx held (%lu in all): call unlock() first",
        held_.back().key, held_.size());
}

}  // namespace hiroba
