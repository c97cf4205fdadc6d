// SPDX-License-Identifier: BSD-3-Clause
// Role: see held_signals.hpp.
#include "base/held_signals.hpp"

#include <errno.h>
#include <signal.h>

#include "base/thread_context.hpp"

namespace hiroba {

void obey_deadly_signals() noexcept {
    const ThreadContext* const thread = this_thread_if_known();
    if (thread == nullptr || thread->mask_before_fault == nullptr) return;
    const int errno_before = errno;
    sigset_t waiting{};
    ::sigpending(&waiting);
    for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
        if (::sigismember(&waiting, number) != 1) continue;
        if (::sigismember(thread->mask_before_fault, number) == 1) continue;
        struct sigaction action {};
        ::sigaction(number, nullptr, &action);
        if (action.sa_handler != SIG_DFL || (action.sa_flags & SA_SIGINFO) != 0) continue;
        sigset_t deadly{};
        ::sigemptyset(&deadly);
        ::sigaddset(&deadly, number);
        ::pthread_sigmask(SIG_UNBLOCK, &deadly, nullptr);
    }
    errno = errno_before;
}

}  // namespace hiroba
