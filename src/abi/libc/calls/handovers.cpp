// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/calls/handovers.hpp"

#include <fcntl.h>
#include <sys/file.h>
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
        case SYS_msgrcv:
        case SYS_accept:
        case SYS_accept4:
        case SYS_rt_sigtimedwait: return Handover::is_told;
        case SYS_write:
        case SYS_writev:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_sendmmsg:
        case SYS_mq_timedsend:
        case SYS_msgsnd:
        case SYS_connect:
        case SYS_sendfile:
        case SYS_splice:
        case SYS_tee:
        case SYS_vmsplice:
        case SYS_shutdown:
        case SYS_kill:
        case SYS_tgkill:
        case SYS_tkill:
        case SYS_rt_tgsigqueueinfo:
        case SYS_rt_sigqueueinfo:
        case SYS_close: return Handover::tells;
        case SYS_sched_yield: return Handover::tells;  // one flush a turn does both
        case SYS_semop:
        case SYS_semtimedop: return Handover::both;
        default: return Handover::none;
    }
}

/// An unlocking thread tells the next to lock.
Handover by_file_lock(long number, const CallArguments& arguments) noexcept {
    const long command = arguments.word[1];
    if (number == SYS_flock) return (command & LOCK_UN) != 0 ? Handover::tells : Handover::is_told;
    if (number != SYS_fcntl || (command != F_SETLK && command != F_SETLKW &&
                                command != F_OFD_SETLK && command != F_OFD_SETLKW))
        return Handover::none;
    const auto* const lock = pointer<const struct flock>(arguments.word[2]);
    if (lock == nullptr) return Handover::none;
    return lock->l_type == F_UNLCK ? Handover::tells : Handover::is_told;
}

/// Those on no descriptor that a message of another node could be about.
bool is_without_descriptor(long number) noexcept {
    switch (number) {
        case SYS_mq_timedsend:
        case SYS_mq_timedreceive:
        case SYS_msgsnd:
        case SYS_msgrcv:
        case SYS_semop:
        case SYS_semtimedop: return true;
        default: return false;
    }
}

/// What the call writes into is another descriptor than its first.
int channel_of(long number, const CallArguments& arguments) noexcept {
    const int word = number == SYS_splice ? 2 : number == SYS_tee ? 1 : 0;
    return static_cast<int>(arguments.word[word]);
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

bool is_ordered_by_kernel(long number) noexcept {
    return is_without_descriptor(number) || number == SYS_flock || number == SYS_fcntl;
}

Handover handover_by(long number, const CallArguments& arguments) noexcept {
    const Handover kind = by_number(number);
    if (is_by_signal(number)) return is_to_itself(number, arguments) ? Handover::none : kind;
    if (number == SYS_sched_yield) return is_to_flush() ? kind : Handover::none;
    if (number == SYS_flock || number == SYS_fcntl) return by_file_lock(number, arguments);
    if (kind == Handover::none || is_without_descriptor(number)) return kind;
    const int fd = channel_of(number, arguments);
    if (fd < 0 || is_standard(fd)) return Handover::none;
    return is_channel(fd) ? kind : Handover::none;
}

}  // namespace hiroba::abi
