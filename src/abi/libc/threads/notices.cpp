// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes what makes libc start threads in the program's name: timers and message queues
// that tell by SIGEV_THREAD. libc's thread only leaves a notice; a thread of the program, the
// postman, starts one for each.
// Invariant: libc's own threads touch private memory alone. What they were given lives as long as
// the process: after timer_delete() one may still be on its way.
#include "abi/libc/threads/notices.hpp"

#include <mqueue.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <new>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/threads.hpp"
#include "base/bell.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

HIROBA_REAL(timer_create);
HIROBA_REAL(mq_notify);

namespace hiroba::abi {
namespace {

/// What the program wants called. In private memory.
struct Wish {
    void (*function)(sigval);
    sigval value;
    std::size_t stack_bytes;  ///< 0: as any thread
    Wish* next;
};

Wish wish_of(const sigevent& event) noexcept {
    Wish wish{event.sigev_notify_function, event.sigev_value, 0, nullptr};
    if (event.sigev_notify_attributes != nullptr)
        pthread_attr_getstacksize(event.sigev_notify_attributes, &wish.stack_bytes);
    return wish;
}

void* fulfil(void* wish_at) {
    auto* const given = static_cast<Wish*>(wish_at);
    const Wish wish = *given;
    delete given;
    wish.function(wish.value);
    return nullptr;
}

/// Takes `wish`.
void start_thread(Wish* wish) noexcept {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (wish->stack_bytes != 0) pthread_attr_setstacksize(&attributes, wish->stack_bytes);
    const int failure = create_thread(&thread, &attributes, &fulfil, wish);
    pthread_attr_destroy(&attributes);
    if (failure == 0) return;
    say("no thread for a function that SIGEV_THREAD names (error %d), so it is not called: raise "
        "ulimit -u or HIROBA_HEAP",
        failure);
    delete wish;
}

// Notices that no thread has been started for; the last one left is the first.
constinit std::atomic<Wish*> left{nullptr};
constinit Bell left_more;

/// In a thread of libc's.
void leave_notice(sigval wish_at) noexcept {
    auto* const wish = new (std::nothrow) Wish(*static_cast<const Wish*>(wish_at.sival_ptr));
    if (wish == nullptr) {
        say("no memory for a notice by SIGEV_THREAD, which is lost: raise ulimit -v");
        return;
    }
    // Relaxed: the exchange below fails where another notice came between.
    wish->next = left.load(std::memory_order_relaxed);
    while (!left.compare_exchange_weak(wish->next, wish)) {
    }
    left_more.ring();
}

/// What has been left, the oldest first.
Wish* collect() noexcept {
    Wish* first = nullptr;
    for (Wish* each = left.exchange(nullptr); each != nullptr;) {
        Wish* const next = each->next;
        each->next = first;
        first = each;
        each = next;
    }
    return first;
}

/// The postman. It ends with the process, like the thread that libc has for the same.
void* bring_notices(void*) {
    for (;;) {
        const std::uint32_t seen = left_more.rings();
        for (Wish* each = collect(); each != nullptr;) {
            Wish* const next = each->next;
            start_thread(each);
            each = next;
        }
        left_more.sleep_past(seen);
    }
}

constinit Latch changing;
constinit Wish* kept = nullptr;  // for libc's threads; with the latch, as the next one
constinit bool has_postman = false;

/// 0, or the error of pthread_create().
int employ_postman() noexcept {
    const std::scoped_lock guard{changing};
    if (has_postman) return 0;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const int failure = create_thread(&thread, &attributes, &bring_notices, nullptr);
    pthread_attr_destroy(&attributes);
    has_postman = failure == 0;
    return failure;
}

/// The same place for the same wish: a program that makes one timer after another keeps one.
Wish* keep(const Wish& wish) noexcept {
    const std::scoped_lock guard{changing};
    for (Wish* each = kept; each != nullptr; each = each->next) {
        if (each->function == wish.function && each->value.sival_ptr == wish.value.sival_ptr &&
            each->stack_bytes == wish.stack_bytes) {
            return each;
        }
    }
    auto* const made = new (std::nothrow) Wish(wish);
    if (made == nullptr) return nullptr;
    made->next = kept;
    return kept = made;
}

bool is_by_thread(const sigevent* event) noexcept {
    return event != nullptr && event->sigev_notify == SIGEV_THREAD;
}

/// `event` with our function for the program's. False: errno says why.
bool stand_in_for(sigevent& event) noexcept {
    Wish* const wish = keep(wish_of(event));
    if (wish == nullptr || employ_postman() != 0) {
        errno = EAGAIN;
        return false;
    }
    event.sigev_notify_function = &leave_notice;
    event.sigev_notify_attributes = nullptr;
    event.sigev_value.sival_ptr = wish;
    return true;
}

void signal_program(const sigevent& event, int code) noexcept {
    siginfo_t info{};
    info.si_signo = event.sigev_signo;
    info.si_code = code;
    info.si_value = event.sigev_value;
    info.si_pid = static_cast<pid_t>(dsm::kernel_call(SYS_getpid));
    dsm::kernel_call(SYS_rt_sigqueueinfo, info.si_pid, event.sigev_signo, &info);
}

void notify_in_thread(const sigevent& event) noexcept {
    auto* const wish = new (std::nothrow) Wish(wish_of(event));
    if (wish != nullptr)
        start_thread(wish);
    else
        say("no memory for a notice by SIGEV_THREAD, which is lost: raise ulimit -v");
}

}  // namespace

void tell_program(const sigevent& event, int code) noexcept {
    if (event.sigev_notify == SIGEV_SIGNAL) signal_program(event, code);
    if (event.sigev_notify == SIGEV_THREAD) notify_in_thread(event);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int timer_create(clockid_t clock, sigevent* event, timer_t* timer) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM() || event == nullptr)
        return real_timer_create(clock, event, timer);
    sigevent ours = *event;
    if (ours.sigev_notify == SIGEV_THREAD_ID)
        return send_by_carrier(ours) ? real_timer_create(clock, &ours, timer) : -1;
    if (!is_by_thread(event)) return real_timer_create(clock, event, timer);
    return stand_in_for(ours) ? real_timer_create(clock, &ours, timer) : -1;
}

int mq_notify(mqd_t queue, const sigevent* event) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM() || !is_by_thread(event)) return real_mq_notify(queue, event);
    sigevent ours = *event;
    return stand_in_for(ours) ? real_mq_notify(queue, &ours) : -1;
}

}  // extern "C"
