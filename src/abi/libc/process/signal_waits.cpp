// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/signal_waits.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/process/first_thread.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/world.hpp"
#include "base/clock.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

/// Most signals come to node 0, so that a thread waits there; elsewhere it looks in between.
constexpr std::uint64_t look_ns = 20'000'000;
constexpr std::uint64_t second_ns = 1'000'000'000;

struct Wanted {
    std::uint64_t mask;
    std::byte info[siginfo_bytes];
};

long take(NodeId node, Wanted& wanted, std::uint64_t for_ns) noexcept {
    const CallArguments words{{static_cast<long>(wanted.mask), static_cast<long>(for_ns)}};
    if (node == world()->job.self) return wait_for_signal_here(words, wanted.info);
    return world()->files->call(node, static_cast<std::int64_t>(SignalCall::wait), words, -1, {},
                                MutableBytes{wanted.info});
}

/// Looks at every other node without waiting. @return -EAGAIN: there is none
// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] long take_elsewhere(Wanted& wanted) noexcept {
    for (std::uint32_t node = 0; node < world()->job.nodes; ++node) {
        if (node == 0 && world()->job.self.value != 0) continue;  // where it has waited
        const long number = take(NodeId{node}, wanted, 0);
        if (number != -EAGAIN) return number;
    }
    return -EAGAIN;
}

long wait_until(std::uint64_t until_ns, Wanted& wanted) noexcept {
    // What brings this thread a signal that it waits for interrupts it, too (thread_signals.hpp).
    const std::uint64_t handlers_before = handlers_so_far();
    for (;;) {
        const std::uint64_t now = now_ns();
        const std::uint64_t left_ns = until_ns > now ? until_ns - now : 0;
        long number = take_elsewhere(wanted);
        if (number == -EAGAIN) number = take(NodeId{0}, wanted, std::min(left_ns, look_ns));
        const bool was_interrupted = handlers_so_far() != handlers_before;
        if (number == -EINTR && !was_interrupted) continue;
        if (number != -EAGAIN || left_ns == 0) return number;
        if (was_interrupted) return -EINTR;  // while another node has waited
    }
}

}  // namespace

std::int64_t wait_for_signal_here(const CallArguments& words, void* info) noexcept {
    const auto mask = static_cast<std::uint64_t>(words.word[0]);
    const auto ns = static_cast<std::uint64_t>(words.word[1]);
    const timespec limit{static_cast<time_t>(ns / second_ns), static_cast<long>(ns % second_ns)};
    return dsm::kernel_call(SYS_rt_sigtimedwait, &mask, info, &limit, sizeof mask);
}

long wait_for_signal(const CallArguments& arguments) noexcept {
    Wanted wanted{};
    if (arguments.word[0] == 0 || arguments.word[3] != sizeof wanted.mask) return -EINVAL;
    std::memcpy(&wanted.mask, reinterpret_cast<const void*>(arguments.word[0]), sizeof wanted.mask);
    std::uint64_t until_ns = ~std::uint64_t{0};
    if (arguments.word[2] != 0) {
        timespec limit;
        std::memcpy(&limit, reinterpret_cast<const void*>(arguments.word[2]), sizeof limit);
        if (limit.tv_sec < 0 || limit.tv_nsec < 0 || limit.tv_nsec >= static_cast<long>(second_ns))
            return -EINVAL;
        constexpr time_t long_enough_s = 1'000'000'000;
        until_ns = now_ns() +
                   static_cast<std::uint64_t>(std::min(limit.tv_sec, long_enough_s)) * second_ns +
                   static_cast<std::uint64_t>(limit.tv_nsec);
    }
    const long number = wait_until(until_ns, wanted);
    if (number > 0 && arguments.word[1] != 0)
        std::memcpy(reinterpret_cast<void*>(arguments.word[1]), wanted.info, siginfo_bytes);
    return number;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

namespace {

// What tgkill() has sent is shown as kill()'s.
int as_libc_tells(long number, siginfo_t* info) noexcept {
    if (number > 0 && info != nullptr) {
        if (info->si_code == SI_TKILL) info->si_code = SI_USER;
        name_sender_for_program(*info);
    }
    return static_cast<int>(number);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
    const long number = call_from(HIROBA_CALLER, SYS_rt_sigtimedwait, set, info, limit, 8);
    return as_libc_tells(number, info);
}

int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
    const long number = call_from(HIROBA_CALLER, SYS_rt_sigtimedwait, set, info, 0, 8);
    return as_libc_tells(number, info);
}

}  // extern "C"
