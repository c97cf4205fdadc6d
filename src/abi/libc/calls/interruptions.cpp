// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/calls/interruptions.hpp"

#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "base/clock.hpp"

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
        case SYS_mq_timedsend:
        case record_lock_call: return Endings::by_some_handlers;
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

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000, ms_ns = 1'000'000;

/// Where a call has its time in milliseconds, which is negative for none; else 0.
int milliseconds_at(long number) noexcept {
    switch (number) {
        case SYS_poll: return 2;
        case SYS_epoll_wait:
        case SYS_epoll_pwait: return 3;
        default: return 0;
    }
}

/// Where a call has a span as a timespec that the kernel does not keep up; else -1.
int span_at(long number, const CallArguments& arguments) noexcept {
    if (number == SYS_nanosleep) return 0;
    const bool is_span = (arguments.word[1] & TIMER_ABSTIME) == 0;
    return number == SYS_clock_nanosleep && is_span ? 2 : -1;
}

/// Those that a handler ends even with SA_RESTART. What of their time is left, if they have one,
/// the kernel or RestOfWait writes down.
bool is_never_repeated(long number) noexcept {
    switch (number) {
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
        case SYS_poll:
        case SYS_ppoll:
        case SYS_select:
        case SYS_pselect6:
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_msgrcv:
        case SYS_msgsnd:
        case SYS_semop: return true;
        default: return false;
    }
}

}  // namespace

RestOfWait::RestOfWait(long number, const CallArguments& arguments) noexcept
    : number_(number), handlers_before_(handlers_so_far()) {
    if (const int at = milliseconds_at(number); at != 0) {
        const long ms = static_cast<int>(arguments.word[at]);
        if (ms >= 0) until_ns_ = now_ns() + static_cast<std::uint64_t>(ms) * ms_ns;
    } else if (const int span = span_at(number, arguments);
               span >= 0 && arguments.word[span] != 0) {
        const timespec asked = *pointer<const timespec>(arguments.word[span]);
        constexpr time_t long_enough_s = 1'000'000'000;
        until_ns_ = now_ns() +
                    static_cast<std::uint64_t>(std::clamp(asked.tv_sec, time_t{0}, long_enough_s)) *
                        second_ns +
                    static_cast<std::uint64_t>(std::max(asked.tv_nsec, 0L));
    }
}

std::uint64_t RestOfWait::left_ns() const noexcept {
    const std::uint64_t now = now_ns();
    return until_ns_ > now ? until_ns_ - now : 0;
}

bool RestOfWait::goes_on(long result, CallArguments& arguments) noexcept {
    if (result != -EINTR || !is_never_repeated(number_) || handlers_so_far() != handlers_before_)
        return false;
    if (const int at = milliseconds_at(number_); at != 0 && until_ns_ != ~std::uint64_t{0}) {
        arguments.word[at] = static_cast<long>((left_ns() + ms_ns - 1) / ms_ns);
    } else if (const int span = span_at(number_, arguments); span >= 0) {
        const std::uint64_t left = left_ns();
        left_ = {static_cast<time_t>(left / second_ns), static_cast<long>(left % second_ns)};
        arguments.word[span] = dsm::kernel::as_word(&left_);
    }
    return true;
}

bool Interruption::has_come() const noexcept {
    return endings_ != Endings::none && handlers() != before_;
}

}  // namespace hiroba::abi
