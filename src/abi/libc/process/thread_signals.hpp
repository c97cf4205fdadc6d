// SPDX-License-Identifier: BSD-3-Clause
// Role: signals that the program sends to one thread of its own, wherever that runs: pthread_kill()
// and its kin. The thread's node leaves a letter and raises a signal there that no thread blocks;
// its handler has the kernel deliver the signal itself, with the thread as it was interrupted.
// Invariant: what a thread keeps closed for the runtime is open to its letters; what the program
// has blocked in it stays pending there.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "abi/libc/process/closed_signals.hpp"

namespace hiroba::abi {

struct CallArguments;

/// What another node is asked, numbered behind SignalCall::wait: the words are a pthread_t, or 0
/// and a number of a thread, and the signal; the data its siginfo.
enum class ThreadCall : std::int64_t { send_signal = (1 << 22) + 1 };

/// Behind the first pthread_create() of the process, by which libc sets its own handler.
void prepare_thread_signals() noexcept;
/// The calling thread runs the program from here on; and no more.
void note_program_thread() noexcept;
void forget_program_thread() noexcept;

/// The kernel's number of one on this node; 0: there is none.
pid_t number_of_program_thread(pthread_t thread) noexcept;
/// What pthread_kill() says of the sender.
siginfo_t sent_to_thread(int number) noexcept;
/// pthread_kill() and pthread_sigqueue(). Not for the calling thread. @return 0 or an error number;
/// nothing: no thread of the program has this name, and libc is to say what it is
std::optional<int> send_signal(pthread_t thread, int number, const siginfo_t& info) noexcept;
/// pthread_cancel(), with the same results; a thread that is about to start is waited for. Not for
/// the calling thread.
std::optional<int> send_cancellation(pthread_t thread) noexcept;
/// tgkill(), tkill() and rt_tgsigqueueinfo(). Nothing: the call is for the kernel alone, or
/// another.
std::optional<long> perform_thread_signal(long number, const CallArguments& arguments) noexcept;
/// For another node. @return 0 or a negated error number
std::int64_t send_signal_here(const CallArguments& words, const std::byte* info) noexcept;

/// `event`, of a timer that is to send a thread of this node a signal (SIGEV_THREAD_ID), becomes
/// one that finds it. False: errno says why.
bool send_by_carrier(sigevent& event) noexcept;
/// In the handler of a call of libc's own that was interrupted so that its thread can be cancelled:
/// that happens where the handler returns to.
void cancel_behind_handler() noexcept;
/// The calling thread leaves the runtime: takes now what waits for it.
/// One that is in the runtime at every system call would hardly ever be found outside.
void take_waiting_letters() noexcept;
/// Whether a letter waits for the calling thread. Any thread.
bool are_letters_waiting() noexcept;

/// `info` of SIGCHLD becomes pending in this process, from any thread: the kernel takes its own
/// kinds of a signal from the process's first thread alone. Several that have not been handled are
/// one.
long queue_as_of_kernel(const siginfo_t& info) noexcept;

/// How many handlers of the program have begun in the calling thread.
std::uint64_t handlers_so_far() noexcept;
/// Those of them that have no SA_RESTART.
std::uint64_t ending_handlers_so_far() noexcept;

/// The call in which `thread`, which serves other nodes, waits in the kernel ends with EINTR. Lost
/// on a thread that has not begun to wait.
void end_call_of_service(pid_t thread) noexcept;

/// While one lives, a handler of the program runs that blocks `mask`.
class HandlerScope {
public:
    HandlerScope(KernelMask mask, bool restarts_calls) noexcept;
    HandlerScope(const HandlerScope&) = delete;
    HandlerScope& operator=(const HandlerScope&) = delete;
    ~HandlerScope();

private:
    KernelMask before_;
};

}  // namespace hiroba::abi
