// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/child_waits.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "abi/libc/calls/interruptions.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/world.hpp"

namespace hiroba::abi {
namespace {

/// One of the program's calls, which any node can be asked.
class ChildWait {
public:
    ChildWait(long number, const CallArguments& given) noexcept
        : number_(number), given_(given), options_at_(number == SYS_waitid ? 3 : 2) {
        long& group = given_.word[number == SYS_waitid ? 1 : 0];
        const long own_group = dsm::kernel_call(SYS_getpgid, 0);
        const bool is_own = number == SYS_waitid
                                ? static_cast<int>(given_.word[0]) == P_PGID && group == own_group
                                : static_cast<int>(group) == -own_group;
        if (is_own) group = 0;  // which each node has for itself
    }

    bool looks_only() const noexcept { return (given_.word[options_at_] & WNOHANG) != 0; }
    /// One child at most can end it.
    bool is_for_one() const noexcept {
        if (number_ == SYS_wait4) return static_cast<int>(given_.word[0]) > 0;
        const auto kind = static_cast<int>(given_.word[0]);
        return kind == P_PID || kind == P_PIDFD;
    }
    /// The node that has the descriptor which names the child.
    std::optional<NodeId> node_of_descriptor() const noexcept {
        if (number_ != SYS_waitid || static_cast<int>(given_.word[0]) != P_PIDFD)
            return std::nullopt;
        return foreign_owner(static_cast<int>(given_.word[1]));
    }

    /// @return positive: there is a child, and tell() knows of it; 0: none yet; a negated error
    /// number, ECHILD: that node has no such child
    long ask(NodeId node, bool waits) noexcept {
        CallArguments words = given_;
        if (!waits) words.word[options_at_] |= WNOHANG;
        told_ = Told{};
        const int result_at = number_ == SYS_waitid ? 2 : 1, usage_at = options_at_ + 1;
        words.word[result_at] =
            number_ == SYS_waitid ? offsetof(Told, info) : offsetof(Told, status);
        words.word[usage_at] = offsetof(Told, usage);
        const long result = node == world()->job.self
                                ? ask_here(words, result_at, usage_at)
                                : world()->files->call_packed(
                                      node, number_, words, 1u << result_at | 1u << usage_at,
                                      std::as_writable_bytes(std::span(&told_, 1)));
        return result == 0 && number_ == SYS_waitid ? told_.info.si_pid : result;
    }

    /// Writes what the program is told. @return the call's result
    long tell(long child) const noexcept {
        if (number_ == SYS_waitid) {
            if (given_.word[2] != 0) *pointer<siginfo_t>(given_.word[2]) = told_.info;
            if (given_.word[4] != 0 && child > 0) *pointer<rusage>(given_.word[4]) = told_.usage;
            return 0;
        }
        if (given_.word[1] != 0 && child > 0) *pointer<int>(given_.word[1]) = told_.status;
        if (given_.word[3] != 0 && child > 0) *pointer<rusage>(given_.word[3]) = told_.usage;
        return child;
    }

private:
    struct Told {
        int status = 0;
        rusage usage{};
        siginfo_t info{};
    };

    /// The kernel writes where it cannot fail: a child that it has told of is gone.
    long ask_here(CallArguments words, int result_at, int usage_at) noexcept {
        PinnedBuffers buffers;
        buffers.add(&told_, sizeof told_, true);
        words.word[result_at] += dsm::kernel::as_word(&told_);
        words.word[usage_at] += dsm::kernel::as_word(&told_);
        const long* const w = words.word;
        return dsm::kernel_call(number_, w[0], w[1], w[2], w[3], w[4], w[5]);
    }

    long number_;
    CallArguments given_;
    int options_at_;
    Told told_;
};

/// Each node, this one first, until one has a child that has ended.
/// @param kept  a node that has some which have not
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] long look_everywhere(ChildWait& wait, NodeId& kept) noexcept {
    const std::uint32_t nodes = world()->job.nodes, self = world()->job.self.value;
    long result = -ECHILD;
    for (std::uint32_t i = 0; i < nodes; ++i) {
        const NodeId node{(self + i) % nodes};
        const long found = wait.ask(node, false);
        if (found == -ECHILD) continue;
        if (found != 0) return found;
        result = 0;
        kept = node;
    }
    return result;
}

/// An eighth longer than the one before: a wait is late by a part of its length.
void nap(std::uint64_t& ns) noexcept {
    constexpr std::uint64_t longest_ns = 20'000'000;
    const timespec rest{0, static_cast<long>(ns)};
    dsm::kernel_call(SYS_nanosleep, &rest, 0);
    ns = std::min(ns + ns / 8, longest_ns);
}

long wait_everywhere(ChildWait& wait, const Interruption& interruption) noexcept {
    std::uint64_t nap_ns = 100'000;
    for (;;) {
        const bool is_ended = interruption.has_come();  // a child that is there goes first
        NodeId kept = world()->job.self;
        const long found = look_everywhere(wait, kept);
        if (found != 0 || wait.looks_only()) return found;
        if (is_ended) return -EINTR;
        if (!wait.is_for_one()) {
            nap(nap_ns);
            continue;
        }
        const long ended = wait.ask(kept, true);
        // Another thread may have been told of it first.
        if (ended != -ECHILD) return ended;
    }
}

}  // namespace

long wait_for_child(long number, const CallArguments& arguments) noexcept {
    ChildWait wait{number, arguments};
    const Interruption interruption{number};
    const auto owner = wait.node_of_descriptor();
    const long found =
        owner ? wait.ask(*owner, !wait.looks_only()) : wait_everywhere(wait, interruption);
    return found < 0 ? found : wait.tell(found);
}

}  // namespace hiroba::abi
