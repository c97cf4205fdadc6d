// SPDX-License-Identifier: BSD-3-Clause
// Role: see cancellation.hpp.
#include "abi/libc/threads/cancellation.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unwind.h>

#include <atomic>

#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"

HIROBA_REAL(pthread_cancel);
HIROBA_REAL(pthread_create);
HIROBA_REAL(pthread_join);

namespace hiroba::abi {
namespace {

/// Whether this node has cancelled threads: what costs anything is done only then.
constinit std::atomic<bool> is_used{false};

constinit thread_local bool is_allowed = false;
constinit thread_local bool is_asked = false;
/// What the innermost CancellableCall has given.
constinit thread_local std::uintptr_t frame = 0;
constinit thread_local dsm::Deadline* waits_until = nullptr;
constinit thread_local bool in_point = false;

/// libc tells nothing of the state without changing it.
bool is_disabled() noexcept {
    int state = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (state == PTHREAD_CANCEL_ENABLE) pthread_setcancelstate(state, nullptr);
    return state == PTHREAD_CANCEL_DISABLE;
}

[[gnu::noinline]] std::uintptr_t here() noexcept {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

bool is_on_signal_stack(std::uintptr_t address) noexcept {
    const ThreadContext* const context = this_thread_if_known();
    return context != nullptr && address - context->signal_stack < context->signal_stack_bytes;
}

/// Whether the code with this stack pointer was called from that frame. One that siglongjmp() has
/// left lies below the stack pointer, or on the stack for signals.
bool is_within(std::uintptr_t outer, std::uintptr_t stack_pointer) noexcept {
    constexpr std::uintptr_t same_frame_bytes = 32;
    if (outer == 0) return false;
    const bool inner_on_signal_stack = is_on_signal_stack(stack_pointer);
    if (is_on_signal_stack(outer) != inner_on_signal_stack) return inner_on_signal_stack;
    return stack_pointer <= outer + same_frame_bytes;
}

/// The calling thread is in none of our calls.
void carry_out() {
    if (!is_used.load(std::memory_order_relaxed)) [[likely]]
        return;
    if (is_asked) cancel_this_thread();
    if (is_allowed) pthread_testcancel();
}

void* end_at_once(void*) { return nullptr; }

}  // namespace

void allow_cancellation() noexcept { is_allowed = true; }
bool may_be_cancelled() noexcept { return is_allowed; }

bool is_cancellation_point(long number, long second) noexcept {
    switch (number) {
        case SYS_read:
        case SYS_readv:
        case SYS_pread64:
        case SYS_preadv:
        case SYS_preadv2:
        case SYS_write:
        case SYS_writev:
        case SYS_pwrite64:
        case SYS_pwritev:
        case SYS_pwritev2:
        case SYS_open:
        case SYS_openat:
        case SYS_creat:
        case SYS_close:
        case SYS_fsync:
        case SYS_fdatasync:
        case SYS_msync:
        case SYS_accept:
        case SYS_accept4:
        case SYS_connect:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_recvmmsg:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_sendmmsg:
        case SYS_poll:
        case SYS_ppoll:
        case SYS_select:
        case SYS_pselect6:
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_pause:
        case SYS_rt_sigsuspend:
        case SYS_rt_sigtimedwait:
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
        case SYS_wait4:
        case SYS_waitid:
        case SYS_msgrcv:
        case SYS_msgsnd:
        case SYS_mq_timedreceive:
        case SYS_mq_timedsend:
        case SYS_splice:
        case SYS_tee:
        case SYS_vmsplice:
        case SYS_getrandom:
        case SYS_futex: return true;  // of libc, which joins by it
        case SYS_fcntl: return second == F_SETLKW || second == F_OFD_SETLKW;
        case SYS_ioctl: return second == TCSBRK;  // tcdrain()
        default: return false;
    }
}

CancellableCall::CancellableCall(bool is_point, dsm::Deadline* until) noexcept
    : frame_before_(frame),
      until_before_(waits_until),
      is_point_before_(in_point),
      is_point_(is_point) {
    in_point = is_point;
    waits_until = until;
    frame = here();
}

void CancellableCall::end() const noexcept {
    frame = frame_before_;
    waits_until = until_before_;
    in_point = is_point_before_;
}

void CancellableCall::begin() const {
    if (!is_point_ || is_within(frame_before_, here())) return;
    carry_out();
}

void end_cancellation_point() {
    if (!is_within(frame, here())) carry_out();
}

bool is_cancellation_waiting() noexcept { return is_asked; }

void ask_for_cancellation() noexcept {
    if (!is_allowed)
        die(exit_environment,
            "pthread_cancel of main's thread or a thread of a parallel region: the region would "
            "wait for it for ever. Cancel threads of pthread_create alone, or run on one node (-n "
            "1)");
    is_asked = true;
}

Cancelling look_at_cancellation(std::uintptr_t interrupted) noexcept {
    if (!is_within(frame, interrupted) || is_disabled()) return Cancelling::now;
    if (waits_until != nullptr) waits_until->time = {};
    return in_point ? Cancelling::ends_call : Cancelling::comes_later;
}

void cancel_this_thread() {
    is_asked = false;
    real_pthread_cancel(pthread_self());
}

void prepare_cancellation() noexcept {
    if (is_used.load()) return;
    // Functions that destroy something are unwound by libgcc_s, but by the personality routine of
    // this library and the copy of the unwinder that it was linked with, whose tables this fills.
    _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
    pthread_t thread;
    if (real_pthread_create(&thread, nullptr, &end_at_once, nullptr) == 0) {
        real_pthread_cancel(thread);
        real_pthread_join(thread, nullptr);
    }
    is_used.store(true);
}

}  // namespace hiroba::abi
