// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/calls/handovers.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/standard_streams.hpp"
#include "base/clock.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

Handover by_number(long number) noexcept {
    switch (number) {
        case SYS_read:
        case SYS_readv:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_recvmmsg:
        case SYS_mq_timedreceive:
        case SYS_rt_sigtimedwait: return Handover::is_told;
        case SYS_write:
        case SYS_writev:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_sendmmsg:
        case SYS_mq_timedsend:
        case SYS_shutdown:
        case SYS_kill:
        case SYS_tgkill:
        case SYS_tkill:
        case SYS_rt_tgsigqueueinfo:
        case SYS_rt_sigqueueinfo:
        case SYS_close: return Handover::tells;
        case SYS_sched_yield: return Handover::tells;  // one flush a turn does both
        default: return Handover::none;
    }
}

bool is_by_signal(long number) noexcept {
    return number == SYS_rt_sigtimedwait || number == SYS_kill || number == SYS_tgkill ||
           number == SYS_tkill || number == SYS_rt_tgsigqueueinfo || number == SYS_rt_sigqueueinfo;
}

/// What a thread sends itself tells nobody: a crash, mostly.
bool is_to_itself(long number, const CallArguments& arguments) noexcept {
    return number == SYS_tgkill && arguments.word[1] == dsm::kernel_call(SYS_gettid);
}

/// A thread that yields again and again flushes at some of its turns: a yield costs less than a
/// microsecond, a flush that finds nothing a few.
bool is_to_flush() noexcept {
    constexpr std::uint64_t apart_ns = 8'000;
    static constinit thread_local std::uint64_t last_ns = 0;
    const std::uint64_t now = now_ns();
    if (now - last_ns < apart_ns) return false;
    last_ns = now;
    return true;
}

/// Files on disks and terminals are none. Event counters and their kin have no type at all. Of
/// another node's descriptor it is not asked: the exchange costs more than a flush.
bool is_channel(int fd) noexcept {
    if (foreign_owner(fd)) return true;
    struct stat status;
    if (dsm::kernel_call(SYS_fstat, fd, &status) != 0) return false;
    const auto type = status.st_mode & S_IFMT;
    return type == S_IFIFO || type == S_IFSOCK || type == 0;
}

}  // namespace

Handover handover_by(long number, const CallArguments& arguments) noexcept {
    const Handover kind = by_number(number);
    if (is_by_signal(number)) return is_to_itself(number, arguments) ? Handover::none : kind;
    const auto fd = static_cast<int>(arguments.word[0]);
    if (number == SYS_sched_yield) return is_to_flush() ? kind : Handover::none;
    if (kind == Handover::none || fd < 0 || is_standard(fd)) return Handover::none;
    const bool is_queue = number == SYS_mq_timedsend || number == SYS_mq_timedreceive;
    return is_queue || is_channel(fd) ? kind : Handover::none;
}

}  // namespace hiroba::abi
