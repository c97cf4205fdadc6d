// SPDX-License-Identifier: BSD-3-Clause
// Role: last words. Every line is one write(2) of one buffer on the caller's stack.
// Invariant: async-signal-safe; raw system calls, because the C library's names may be interposed
// by our own wrappers, which need a world that is falling apart just now.
#include "base/fatal.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstring>

#include "base/line.hpp"
#include "base/trace.hpp"

namespace hiroba {
namespace {

char identity_text[128] = "hiroba: ";

/// The thread now inside fatal(), so that a fault in there cannot start it over.
std::atomic<long> dying_thread{0};

/// Ends the process as an unhandled SIGABRT does, whatever the program asked for.
[[noreturn]] void end_by_abort() noexcept {
    // The kernel's struct sigaction; all zero is SIG_DFL with an empty mask.
    const unsigned long default_action[4] = {};
    syscall(SYS_rt_sigaction, SIGABRT, default_action, nullptr, sizeof(long));
    const std::uint64_t abort_bit = std::uint64_t{1} << (SIGABRT - 1);
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &abort_bit, nullptr, sizeof abort_bit);
    syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGABRT);
    // Reached when another thread's sigaction() came in between.
    for (;;) syscall(SYS_exit_group, 128 + SIGABRT);
}

void say_list(const char* format, std::va_list arguments) noexcept {
    Line line;
    line.append(identity());
    line.append_format(format, arguments);
    line.write_to(STDERR_FILENO);
}

}  // namespace

void set_identity(unsigned rank, const char* host) noexcept {
    Line line;
    line.append_format("hiroba[%u@%.64s]: ", rank, host);
    std::memcpy(identity_text, line.text().data(), line.text().size());
    identity_text[line.text().size()] = 0;
}

const char* identity() noexcept { return identity_text; }

void say(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
}

void fatal(const char* format, ...) noexcept {
    const long self = syscall(SYS_gettid);
    if (dying_thread.exchange(self, std::memory_order_relaxed) == self) end_by_abort();
    std::va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
    print_trace(STDERR_FILENO);
    end_by_abort();
}

void die(int status, const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
    for (;;) syscall(SYS_exit_group, status);
}

}  // namespace hiroba
