// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/process/child_signals.hpp"

#include <signal.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstring>
#include <span>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/world.hpp"
#include "base/service_thread.hpp"
#include "dsm/memory/fault_lock.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

constinit std::atomic<bool> is_telling{false};

/// Waits without end: the process ends around it. Signals of one kind that come close together are
/// one, as on one machine.
void tell_node_0() noexcept {
    const std::uint64_t mask = dsm::mask_of(SIGCHLD);
    for (;;) {
        siginfo_t info{};
        const long number = dsm::kernel_call(SYS_rt_sigtimedwait, &mask, &info, 0, sizeof mask);
        if (number != SIGCHLD) continue;
        world()->files->call(NodeId{0}, static_cast<std::int64_t>(ChildCall::tell), CallArguments{},
                             -1, std::as_bytes(std::span(&info, 1)), {});
    }
}

}  // namespace

void tell_of_children() noexcept {
    if (!is_node_process() || world()->job.self.value == 0 || is_telling.exchange(true)) return;
    start_service_thread("tells node 0 of children", [] { tell_node_0(); }).detach();
}

std::int64_t tell_of_child_here(const std::byte* info) noexcept {
    siginfo_t given;
    std::memcpy(&given, info, sizeof given);
    return queue_as_of_kernel(given);
}

}  // namespace hiroba::abi
