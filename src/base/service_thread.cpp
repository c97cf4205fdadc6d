// SPDX-License-Identifier: BSD-3-Clause
// Role: see service_thread.hpp.
#include "base/service_thread.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/fatal.hpp"

namespace hiroba {
namespace {

constexpr unsigned long bit(int number) { return 1ul << (number - 1); }

}  // namespace

const char* thread_advice(int error) noexcept {
    if (error == EAGAIN || error == ENOMEM)
        return "Raise ulimit -u or the control group's pids.max";
    return "Allow clone and clone3 in the container's seccomp profile";
}

ServiceThreadStart::ServiceThreadStart() noexcept {
    // libc has every thread change its ids by the second, and ends threads by the first.
    constexpr unsigned long of_libc = bit(32) | bit(33);
    const unsigned long blocked = ~(of_libc | bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) |
                                    bit(SIGILL) | bit(SIGTRAP) | bit(SIGABRT) | bit(SIGSYS));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, &former_, sizeof blocked);
}

ServiceThreadStart::~ServiceThreadStart() {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &former_, nullptr, sizeof former_);
}

void ServiceThreadStart::fail(const char* purpose, int error) noexcept {
    die(exit_environment, "the thread that %s did not start: %s. %s", purpose, strerror(error),
        thread_advice(error));
}

}  // namespace hiroba
