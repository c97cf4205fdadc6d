// SPDX-License-Identifier: BSD-3-Clause
// Role: the handler of SIGSYS, which the kernel raises instead of a system call made outside this
// library (Documentation/admin-guide/syscall-user-dispatch.rst). In the calling thread, on its
// alternate stack, all signals as open as they were.
// Invariant: nothing here makes a system call by libc: ours are made by kernel_call(), in our text.
#include <linux/prctl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_call_trap.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/process/child_signals.hpp"
#include "abi/libc/process/children.hpp"
#include "abi/libc/process/signal_masks.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/sync/futexes.hpp"
#include "abi/libc/threads/cancellation.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/program_call.hpp"
#include "base/settings.hpp"
#include "base/thread_context.hpp"
#include "omp/process/system_libraries.hpp"

extern "C" {
[[noreturn, gnu::visibility("hidden")]] void hiroba_signal_end(long stack) noexcept;
[[gnu::visibility("hidden")]] extern const char hiroba_repeat_calls[];
[[gnu::visibility("hidden")]] extern std::atomic<greg_t> hiroba_repeat_places[];
[[gnu::visibility("hidden")]] void hiroba_signal_return() noexcept;
[[gnu::visibility("hidden")]] extern const char __ehdr_start;
[[gnu::visibility("hidden")]] extern const char etext;
}

namespace hiroba::abi {
namespace {

constexpr std::size_t repeat_places = 16;
constexpr std::size_t repeat_bytes = 16;

// Newer than the oldest headers: Linux 5.11.
constexpr int set_dispatch = 59;  // PR_SET_SYSCALL_USER_DISPATCH
constexpr int dispatch_on = 1;    // PR_SYS_DISPATCH_ON
constexpr int by_dispatch = 2;    // SYS_USER_DISPATCH, as si_code

constinit std::atomic<bool> examined{false};
constinit Latch places_latch;
constinit Latch action_latch;
constinit struct sigaction program_action {};

/// Calls may pass that come from an address of the loader's image of this library, which is fixed
/// as long as the process lives; for a while also those of a thread whose own byte says so.
long enable_for_this_thread() noexcept {
    char& examines = this_thread().examines_calls;
    examines = 1;
    const auto begin = reinterpret_cast<std::uintptr_t>(&__ehdr_start);
    const auto end = reinterpret_cast<std::uintptr_t>(&etext);
    return dsm::kernel_call(SYS_prctl, set_dispatch, dispatch_on, begin, end - begin, &examines);
}

/// Sends the thread to a stub that repeats the call and comes back behind it.
void repeat_at_stub(greg_t* registers) noexcept {
    const greg_t back = registers[REG_RIP];
    places_latch.lock();
    std::size_t i = 0;
    while (i < repeat_places && hiroba_repeat_places[i].load() != back &&
           hiroba_repeat_places[i].load() != 0) {
        ++i;
    }
    if (i == repeat_places) {
        fatal("threads and processes are made at more than %lu places of the code", repeat_places);
    }
    hiroba_repeat_places[i].store(back);
    places_latch.unlock();
    registers[REG_RIP] = static_cast<greg_t>(
        reinterpret_cast<std::uintptr_t>(hiroba_repeat_calls + i * repeat_bytes));
}

/// The mask of the interrupted code is the one in the frame, put in place by the handler's return.
/// `by_program`: it means the mask that it has, and libc the kernel's.
long change_mask_of(ucontext_t& context, const CallArguments& arguments, bool by_program) noexcept {
    std::uint64_t mask;
    std::memcpy(&mask, &context.uc_sigmask, sizeof mask);
    const std::uint64_t before = by_program ? shown_mask(mask) : mask;
    if (arguments.word[3] != sizeof mask) return -EINVAL;
    if (arguments.word[1] != 0) {
        std::uint64_t given;
        std::memcpy(&given, reinterpret_cast<const void*>(arguments.word[1]), sizeof given);
        const auto how = static_cast<int>(arguments.word[0]);
        if (how < SIG_BLOCK || how > SIG_SETMASK) return -EINVAL;
        mask = by_program ? change_program_mask(how, given, mask)
                          : ClosedSignals{}.change(how, given, mask);
    }
    if (arguments.word[2] != 0) {
        std::memcpy(reinterpret_cast<void*>(arguments.word[2]), &before, sizeof before);
    }
    std::memcpy(&context.uc_sigmask, &mask, sizeof mask);
    return 0;
}

bool returns_twice(long number) noexcept {
    return number == SYS_clone || number == SYS_clone3 || number == SYS_fork || number == SYS_vfork;
}

/// A fork that libc makes inside itself, for daemon() or forkpty(): not what starts a thread, or a
/// child that shares the memory until it executes a program.
bool forks(long number, const greg_t* registers) noexcept {
    if (number == SYS_fork) return true;
    if (number != SYS_clone && number != SYS_clone3) return false;
    // clone3 has the flags in memory, in front.
    const auto flags = number == SYS_clone
                           ? static_cast<std::uint64_t>(registers[REG_RDI])
                           : *reinterpret_cast<const std::uint64_t*>(registers[REG_RDI]);
    return (flags & CLONE_VM) == 0;
}

bool is_of_system(greg_t place) noexcept {
    return omp::is_system_code(reinterpret_cast<const void*>(place));
}

/// What libc itself waits for is a thread of this node: the end of one that is joined, which the
/// kernel tells, or its own counts on the stack.
bool is_futex_of_program(int number, const CallArguments& arguments, greg_t place) noexcept {
    return spans_nodes() && is_global_futex(number, arguments.word) && !is_of_system(place);
}

/// libc compares what it asks for with what the kernel tells it: of who has sent a signal to change
/// ids, and whom it sends one.
bool is_id_for_libc(int number, greg_t place) noexcept {
    return (number == SYS_getpid || number == SYS_gettid) && is_of_system(place);
}

/// libc itself carries out what cancels its caller, behind the call.
long call_of_libc(int number, const CallArguments& arguments) noexcept {
    const CancellableCall call{is_cancellation_point(number, arguments.word[1])};
    const long result = perform_system_call(number, arguments);
    call.end();
    if (result == -EINTR && is_cancellation_waiting()) cancel_behind_handler();
    return result;
}

void serve(int number, ucontext_t& context) noexcept {
    greg_t* const registers = context.uc_mcontext.gregs;
    if (number == SYS_rt_sigreturn) hiroba_signal_end(registers[REG_RSP]);
    if (forks(number, registers)) {
        refuse_fork();
        registers[REG_RAX] = -ENOSYS;
        return;
    }
    if (number == SYS_vfork) tell_of_children();
    if (returns_twice(number)) return repeat_at_stub(registers);
    const CallArguments arguments{{registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                   registers[REG_R10], registers[REG_R8], registers[REG_R9]}};
    if (number == SYS_rt_sigprocmask)
        registers[REG_RAX] = change_mask_of(context, arguments, !is_of_system(registers[REG_RIP]));
    else if (is_futex_of_program(number, arguments, registers[REG_RIP]))
        registers[REG_RAX] = perform_futex(number, arguments.word);
    else if (is_id_for_libc(number, registers[REG_RIP]))
        registers[REG_RAX] = dsm::kernel_call(number);
    else
        registers[REG_RAX] = call_of_libc(number, arguments);
}

/// SIGSYS of a seccomp filter, or sent by kill().
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
    action_latch.lock();
    const struct sigaction action = program_action;
    action_latch.unlock();
    if (action.sa_handler == SIG_IGN) return;
    if (action.sa_handler == SIG_DFL) die(128 + SIGSYS, "ended by a SIGSYS without a handler");
    call_program(action.sa_sigaction, signal, info,
                 context);  // one argument or three: the callee takes its own
}

void on_system_call(int signal, siginfo_t* info, void* raw_context) {
    const int errno_before = errno;
    if (info->si_code == by_dispatch) {
        serve(info->si_syscall, *static_cast<ucontext_t*>(raw_context));
    } else {
        pass_on(signal, info, raw_context);
    }
    errno = errno_before;
}

/// As the kernel takes it; its return is code of this library, so that it is not examined.
bool install_handler() noexcept {
    struct {
        void (*handler)(int, siginfo_t*, void*);
        std::uint64_t flags;
        void (*restorer)() noexcept;
        std::uint64_t mask;
    } const action{&on_system_call,
                   std::uint64_t{SA_SIGINFO | SA_ONSTACK | SA_RESTART} | SA_NODEFER | 0x04000000,
                   &hiroba_signal_return, 0};
    return dsm::kernel_call(SYS_rt_sigaction, SIGSYS, &action, 0, sizeof action.mask) == 0;
}

}  // namespace

bool system_calls_are_examined() noexcept {
    return examined.load(std::memory_order_relaxed);  // fixed before the second thread
}

void prepare_system_call_trap() noexcept {
    if (setting("HIROBA_SYSTEM_CALLS") == "interposed") return;
    const long tried = enable_for_this_thread();
    if (tried == 0) dsm::kernel_call(SYS_prctl, set_dispatch, 0, 0, 0, 0);
    if (tried == 0 && install_handler()) {
        examined.store(true, std::memory_order_relaxed);
    } else if (setting("HIROBA_SYSTEM_CALLS") == "examined") {
        die(exit_environment,
            "the kernel cannot examine system calls: prctl gave %ld; Linux 5.11 and a container "
            "that allows it are needed, or set HIROBA_SYSTEM_CALLS=auto",
            tried);
    }
}

void examine_this_thread() noexcept {
    if (!system_calls_are_examined()) return;
    const long result = enable_for_this_thread();
    HIROBA_INVARIANT(result == 0, "examining system calls: prctl gave %ld", result);
}

void set_program_sigsys_action(const struct sigaction* action, struct sigaction* old) noexcept {
    struct sigaction wanted {};
    if (action != nullptr) wanted = *action;  // may be global: outside the latch
    action_latch.lock();
    const struct sigaction before = program_action;
    if (action != nullptr) program_action = wanted;
    action_latch.unlock();
    if (old != nullptr) *old = before;
}

}  // namespace hiroba::abi
