// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes joining and detaching of threads that the program has made: their stacks go
// back; and cancelling them, on any node. Invariant: libc does the joining. The joining thread is
// on the joined one's node, which has its memory; joining one of another node is refused with a
// line.
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/cancellation.hpp"
#include "abi/libc/threads/thread_stacks.hpp"

HIROBA_REAL(pthread_join);
HIROBA_REAL(pthread_tryjoin_np);
HIROBA_REAL(pthread_timedjoin_np);
HIROBA_REAL(pthread_clockjoin_np);
HIROBA_REAL(pthread_detach);
HIROBA_REAL(pthread_cancel);
HIROBA_REAL(thrd_join);
HIROBA_REAL(thrd_detach);

using namespace hiroba::abi;

namespace {

int joined(int failure, pthread_t thread) noexcept {
    if (failure == 0) note_thread_joined(thread);
    return failure;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int pthread_join(pthread_t thread, void** result) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_join(thread, result);
    refuse_thread_of_other_node("pthread_join", thread);
    return joined(real_pthread_join(thread, result), thread);
}

int pthread_tryjoin_np(pthread_t thread, void** result) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_tryjoin_np(thread, result);
    refuse_thread_of_other_node("pthread_tryjoin_np", thread);
    return joined(real_pthread_tryjoin_np(thread, result), thread);
}

int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* until) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_timedjoin_np(thread, result, until);
    refuse_thread_of_other_node("pthread_timedjoin_np", thread);
    return joined(real_pthread_timedjoin_np(thread, result, until), thread);
}

int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock, const timespec* until) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_clockjoin_np(thread, result, clock, until);
    refuse_thread_of_other_node("pthread_clockjoin_np", thread);
    return joined(real_pthread_clockjoin_np(thread, result, clock, until), thread);
}

// Noted first: once detached, the thread may be gone, and its place another's.
int pthread_detach(pthread_t thread) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) {
        refuse_thread_of_other_node("pthread_detach", thread);
        note_thread_detached(thread);
    }
    return real_pthread_detach(thread);
}

// libc would write into the thread's control block, and unwind it wherever it is.
int pthread_cancel(pthread_t thread) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_cancel(thread);
    prepare_cancellation();
    if (pthread_equal(thread, pthread_self()) == 0) {
        if (const auto failure = send_cancellation(thread)) return *failure;
        if (is_thread_of_other_node(thread)) return 0;  // one that has ended
    }
    return real_pthread_cancel(thread);
}

int thrd_join(thrd_t thread, int* result) {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_thrd_join(thread, result);
    refuse_thread_of_other_node("thrd_join", thread);
    const int outcome = real_thrd_join(thread, result);
    if (outcome == thrd_success) note_thread_joined(thread);
    return outcome;
}

int thrd_detach(thrd_t thread) {
    if (HIROBA_CALL_OF_PROGRAM()) {
        refuse_thread_of_other_node("thrd_detach", thread);
        note_thread_detached(thread);
    }
    return real_thrd_detach(thread);
}

}  // extern "C"
