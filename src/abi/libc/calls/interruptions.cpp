// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/calls/interruptions.hpp"

#include <sys/syscall.h>

#include "abi/libc/process/thread_signals.hpp"

namespace hiroba::abi {

Endings endings_of(long number) noexcept {
    switch (number) {
        case SYS_read:
        case SYS_readv:
        case SYS_write:
        case SYS_writev:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_recvmmsg:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_accept:
        case SYS_accept4:
        case SYS_connect:
        case SYS_wait4:
        case SYS_waitid:
        case SYS_flock:
        case SYS_fcntl:
        case SYS_ioctl:
        case SYS_open:
        case SYS_openat:
        case SYS_splice:
        case SYS_tee:
        case SYS_vmsplice:
        case SYS_sendfile:
        case SYS_mq_timedreceive:
        case SYS_mq_timedsend: return Endings::by_some_handlers;
        case SYS_poll:
        case SYS_ppoll:
        case SYS_select:
        case SYS_pselect6:
        case SYS_epoll_wait:
        case SYS_epoll_pwait: return Endings::by_any_handler;
        default: return Endings::none;
    }
}

Interruption::Interruption(long number) noexcept
    : endings_(endings_of(number)), before_(handlers()) {}

std::uint64_t Interruption::handlers() const noexcept {
    return endings_ == Endings::by_any_handler ? handlers_so_far() : ending_handlers_so_far();
}

bool Interruption::has_come() const noexcept {
    return endings_ != Endings::none && handlers() != before_;
}

}  // namespace hiroba::abi
