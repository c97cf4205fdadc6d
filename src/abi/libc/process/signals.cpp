// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes signal actions and alternate stacks.
// Faults: the handlers of SIGSEGV, SIGBUS and SIGTRAP remember the program's wishes for these
// signals and honour them when a fault is not ours. All other signals: the program's handler is
// called by relay(), because the runtime may be interrupted anywhere.
// Invariant: a handler of the program never runs while its thread executes the runtime: it may
// touch global memory, and the fault would wait for a latch its own thread holds. Signal frames go
// to the private alternate stack, which the kernel can always write.
#include "abi/libc/process/signals.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "abi/libc/calls/system_call_trap.hpp"
#include "abi/libc/process/crashes.hpp"
#include "abi/libc/process/first_thread.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/process/signal_masks.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"
#include "abi/libc/threads/thread_stacks.hpp"
#include "abi/world.hpp"
#include "base/atomic_window.hpp"
#include "base/latch.hpp"
#include "base/program_call.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/fault_program.hpp"
#include "omp/atomic/fault_trap.hpp"
#include "omp/process/system_libraries.hpp"

extern "C" void moncontrol(int mode) noexcept;  // libc's; in no header

HIROBA_REAL(sigaction);
HIROBA_REAL(signal);
HIROBA_REAL(pthread_sigmask);
HIROBA_REAL(sigaltstack);
HIROBA_REAL(raise);
HIROBA_REAL(pthread_kill);
HIROBA_REAL(pthread_sigqueue);
HIROBA_REAL(alarm);
HIROBA_REAL(setitimer);
HIROBA_REAL(timer_settime);
HIROBA_REAL(timer_delete);

namespace hiroba::abi {
namespace {

using Action = struct sigaction;

/// A signal the program handles. Written by sigaction() under `changing`; read by relay().
struct Relayed {
    std::atomic<bool> active{false};
    Action wanted{};
    Action by_default{};  ///< as the program asked for it, where ours stands for it
    std::atomic<bool> deferred{false};
    siginfo_t deferred_info{};  ///< of the oldest deferred signal; further ones merge with it
    timer_t again{};            ///< raises the signal once more
    bool has_timer = false;
};
constinit Relayed relayed[_NSIG];
constinit std::atomic<std::uint32_t> deferred_count{0};
constinit Latch changing;
thread_local stack_t program_stack{nullptr, SS_DISABLE, 0};
/// This thread has deferred a signal since deliver_deferred().
thread_local bool defers = false;

/// libc adds it to every action and shows it to a caller that reads an action back (SA_RESTORER).
constexpr int restorer_flag = 0x04000000;

/// libc's own, past perform_signal_action().
int set_in_kernel(int number, const Action* action, Action* old) noexcept {
    const CallsOfOwnLibrary not_examined;
    return real_sigaction(number, action, old);
}

bool is_fault(int number) noexcept {
    return number == SIGSEGV || number == SIGBUS || number == SIGTRAP;
}

/// For cancellation, and changes of ids.
bool is_of_libc(int number) noexcept { return number >= __SIGRTMIN && number < SIGRTMIN; }

/// Gives the signal its default action, as the program sees it: what would end the node is told
/// first (crashes.hpp).
int set_default(int number, const Action& wanted, Action* before) noexcept {
    const Action* const ours = action_that_tells(number);
    if (ours == nullptr) return set_in_kernel(number, &wanted, before);
    if (before != nullptr) set_in_kernel(number, nullptr, before);
    dsm::set_kernel_action(number, *ours, nullptr);
    relayed[number].by_default = wanted;
    relayed[number].by_default.sa_flags |= restorer_flag;
    return 0;
}

/// Raises the signal again in a millisecond: until then the thread may have left the runtime.
void defer(Relayed& signal, const siginfo_t& info) noexcept {
    defers = true;
    if (!signal.deferred.exchange(true)) {
        signal.deferred_info = info;
        deferred_count.fetch_add(1);
    }
    const itimerspec soon{{0, 0}, {0, 1'000'000}};
    real_timer_settime(signal.again, 0, &soon, nullptr);
}

void run_handler(Relayed& signal, int number, siginfo_t* info, void* machine) {
    const Action wanted = signal.wanted;
    if ((static_cast<unsigned>(wanted.sa_flags) & SA_RESETHAND) != 0) {
        Action initial{};
        initial.sa_handler = SIG_DFL;
        set_default(number, initial, nullptr);
        signal.active.store(false);
    }
    KernelMask blocked;
    memcpy(&blocked, &wanted.sa_mask, sizeof blocked);
    const bool restarts_calls = (static_cast<unsigned>(wanted.sa_flags) & SA_RESTART) != 0;
    const HandlerScope runs{blocked | dsm::mask_of(number), restarts_calls};
    name_sender_for_program(*info);
    // Both forms of handler: with one argument the others are ignored.
    call_program(wanted.sa_sigaction, number, info, machine);
    close_again(number, *static_cast<ucontext_t*>(machine));
}

/// Whether the calling thread is at an atomic for which another may wait.
bool is_going_by() noexcept {
    const AtomicWindow* const window = own_atomic_window;
    return window != nullptr && window->page.load(std::memory_order_relaxed) != 0;
}

/// The handler of every signal the program handles. Only on several nodes.
void relay(int number, siginfo_t* info, void* machine) {
    const int errno_before = errno;
    Relayed& signal = relayed[number];
    const ThreadContext* const context = this_thread_if_known();
    if (signal.has_timer && context != nullptr && (context->in_runtime || is_going_by())) {
        defer(signal, *info);
    } else if (signal.deferred.exchange(false)) {
        deferred_count.fetch_sub(1);
        siginfo_t first = signal.deferred_info;
        run_handler(signal, number, &first, machine);
    } else if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &signal) {
        run_handler(signal, number, info, machine);
    }
    errno = errno_before;
}

/// The timer that raises `number` again; without one, signals are delivered at once.
void make_timer(Relayed& signal, int number) noexcept {
    if (signal.has_timer) return;
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = number;
    event.sigev_value.sival_ptr = &signal;
    const CallsOfOwnLibrary not_examined;
    signal.has_timer = timer_create(CLOCK_MONOTONIC, &event, &signal.again) == 0;
}

Action relaying(const Action& wanted) noexcept {
    Action action = wanted;
    action.sa_sigaction = &relay;
    action.sa_flags = (wanted.sa_flags | SA_SIGINFO | SA_ONSTACK) &
                      static_cast<int>(~static_cast<unsigned>(SA_RESETHAND));
    without_faults(&wanted.sa_mask, action.sa_mask);
    return action;
}

int set_relayed(int number, const Action* action, Action* old) noexcept {
    if (number <= 0 || number >= _NSIG) return set_in_kernel(number, action, old);
    Relayed& signal = relayed[number];
    Action wanted{};
    if (action != nullptr) wanted = *action;

    changing.lock();
    const bool was_active = signal.active.load();
    const Action former = signal.wanted;
    const Action former_default = signal.by_default;
    Action actual{};
    int result = 0;
    if (action == nullptr) {
        result = set_in_kernel(number, nullptr, &actual);
    } else if (wanted.sa_handler == SIG_DFL) {
        result = set_default(number, wanted, &actual);
        signal.active.store(result != 0 && was_active);
    } else if (wanted.sa_handler == SIG_IGN) {
        result = set_in_kernel(number, &wanted, &actual);
        signal.active.store(result != 0 && was_active);
    } else {
        make_timer(signal, number);
        signal.wanted = wanted;
        signal.wanted.sa_flags |= restorer_flag;
        const Action action_of_ours = relaying(wanted);
        result = set_in_kernel(number, &action_of_ours, &actual);
        signal.active.store(result == 0);
    }
    if (is_action_that_tells(number, actual)) actual = former_default;
    changing.unlock();
    if (result == 0 && old != nullptr) *old = was_active ? former : actual;
    return result;
}

int change_action(int number, const Action* action, Action* old) noexcept {
    if (number == SIGTRAP) {
        omp::set_program_trap_action(action, old);
        return 0;
    }
    if (number == SIGSYS) {
        set_program_sigsys_action(action, old);
        return 0;
    }
    if (is_fault(number)) {
        dsm::set_program_action(number, action, old);
        return 0;
    }
    return set_relayed(number, action, old);
}

int set_action(int number, const Action* action, Action* old) noexcept {
    // The program's structure may lie in global memory: it is read once.
    Action wanted{};
    if (action != nullptr) wanted = *action;
    const int result = change_action(number, action == nullptr ? nullptr : &wanted, old);
    if (result == 0 && action != nullptr) signal_action_changed(number, wanted);
    return result;
}

sighandler_t set_handler(int number, sighandler_t handler, int flags) noexcept {
    Action action{};
    Action old{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    return set_action(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/// As the kernel takes and gives it.
struct KernelAction {
    decltype(Action::sa_sigaction) handler;
    std::uint64_t flags;
    void (*restorer)();
    KernelMask mask;
};

Action from_kernel(const KernelAction& given) noexcept {
    Action action{};
    action.sa_sigaction = given.handler;
    action.sa_flags = static_cast<int>(given.flags);
    memcpy(&action.sa_mask, &given.mask, sizeof given.mask);
    return action;
}

KernelAction to_kernel(const Action& action) noexcept {
    KernelAction given{action.sa_sigaction, static_cast<unsigned>(action.sa_flags),
                       action.sa_restorer, 0};
    memcpy(&given.mask, &action.sa_mask, sizeof given.mask);
    return given;
}

/// What libc sets for itself, for profil() or while system() waits, is for this node.
bool is_for_all_nodes(const Action& action) noexcept {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
           !omp::is_system_code(reinterpret_cast<const void*>(action.sa_sigaction));
}

int set_stack(const stack_t* stack, stack_t* old) noexcept {
    if (stack != nullptr && (stack->ss_flags & SS_DISABLE) == 0 &&
        stack->ss_size < static_cast<std::size_t>(MINSIGSTKSZ)) {
        errno = ENOMEM;
        return -1;
    }
    if (old != nullptr) *old = program_stack;
    if (stack != nullptr) program_stack = *stack;
    return 0;
}

/// The runtime's threads block what comes from outside, so that it finds main's thread. What such a
/// thread sends itself is for it, and stays pending if the program has blocked it.
int raise_here(int number) noexcept {
    const bool is_number = number > 0 && number < _NSIG;
    if (is_number && (program_mask() & dsm::mask_of(number)) != 0) return real_raise(number);
    sigset_t one;
    sigset_t former;
    sigemptyset(&one);
    sigaddset(&one, number);
    real_pthread_sigmask(SIG_UNBLOCK, &one, &former);
    const int result = real_raise(number);
    real_pthread_sigmask(SIG_SETMASK, &former, nullptr);
    return result;
}

bool is_runtime_thread() noexcept {
    const ThreadContext* const context = this_thread_if_known();
    return world()->job.self.value != 0 || (context != nullptr && context->global_thread != 0);
}

/// In a call of the program's that stops a timer: what it has sent this thread so far is handled
/// before that returns.
void deliver_deferred() noexcept {
    if (!std::exchange(defers, false)) return;
    const int errno_before = errno;
    for (int number = 1; number < _NSIG; ++number)
        if (relayed[number].deferred.load()) real_raise(number);
    errno = errno_before;
}

}  // namespace

bool is_signal_deferred() noexcept { return deferred_count.load() != 0 || are_letters_waiting(); }

bool handler_restarts_calls(int number) noexcept {
    const Relayed& signal = relayed[number];
    return !signal.active.load() ||
           (static_cast<unsigned>(signal.wanted.sa_flags) & SA_RESTART) != 0;
}

void let_signals_in() noexcept {
    const timespec twice_the_deferral{0, 2'000'000};
    const int errno_before = errno;
    nanosleep(&twice_the_deferral, nullptr);
    errno = errno_before;
}

void set_program_signal(int number, const struct sigaction& action) noexcept {
    change_action(number, &action, nullptr);
}

void adopt_signal_actions() noexcept {
    // profil() has one buffer, which all nodes would count in: node 0 alone is profiled.
    if (world()->job.self.value != 0) moncontrol(0);
    for (int number = 1; number < _NSIG; ++number) {
        if (is_fault(number) || number == SIGSYS || is_of_libc(number)) continue;
        Action found{};
        if (real_sigaction(number, nullptr, &found) != 0) continue;
        if (found.sa_handler == SIG_DFL || found.sa_handler == SIG_IGN) continue;
        if (!is_own_code(reinterpret_cast<const void*>(found.sa_sigaction)))
            set_relayed(number, &found, nullptr);
    }
}

bool sets_action_of_program(long number, const long* words) noexcept {
    return number == SYS_rt_sigaction && is_node_process() &&
           !is_of_libc(static_cast<int>(words[0]));
}

long perform_signal_action(const long* words) noexcept {
    if (words[3] != sizeof(KernelMask)) return -EINVAL;
    const auto number = static_cast<int>(words[0]);
    Action wanted{}, before{};
    if (words[1] != 0) {
        KernelAction given;
        memcpy(&given, reinterpret_cast<const void*>(words[1]), sizeof given);
        wanted = from_kernel(given);
    }
    const int errno_before = errno;
    const int result = change_action(number, words[1] != 0 ? &wanted : nullptr, &before);
    const int failure = std::exchange(errno, errno_before);
    if (result != 0) return -failure;
    if (words[2] != 0) {
        const KernelAction old = to_kernel(before);
        memcpy(reinterpret_cast<void*>(words[2]), &old, sizeof old);
    }
    if (words[1] != 0 && is_for_all_nodes(wanted)) signal_action_changed(number, wanted);
    return 0;
}

const sigset_t* without_faults(const sigset_t* set, sigset_t& room) noexcept {
    if (set == nullptr) return nullptr;
    room = *set;
    for (const int fault : {SIGSEGV, SIGBUS, SIGTRAP, SIGSYS}) sigdelset(&room, fault);
    return &room;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int sigaction(int number, const struct sigaction* action, struct sigaction* old) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return set_in_kernel(number, action, old);
    return set_action(number, action, old);
}

sighandler_t signal(int number, sighandler_t handler) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) {
        const hiroba::CallsOfOwnLibrary not_examined;
        return real_signal(number, handler);
    }
    return set_handler(number, handler, SA_RESTART);
}

/// What `signal` means to programs compiled for System V.
sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
    constexpr int one_shot = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    if (HIROBA_CALL_OF_PROGRAM()) return set_handler(number, handler, one_shot);
    struct sigaction action = {};
    struct sigaction old = {};
    action.sa_handler = handler;
    action.sa_flags = one_shot;
    return set_in_kernel(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

int raise(int number) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM() || !is_runtime_thread()) return real_raise(number);
    return raise_here(number);
}

int pthread_kill(pthread_t thread, int number) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_kill(thread, number);
    if (!pthread_equal(thread, pthread_self())) {
        if (const auto sent = send_signal(thread, number, sent_to_thread(number))) return *sent;
        return is_thread_of_other_node(thread) ? ESRCH : real_pthread_kill(thread, number);
    }
    if (number <= 0 || number >= _NSIG || !is_runtime_thread())
        return real_pthread_kill(thread, number);
    return raise_here(number) == 0 ? 0 : errno;
}

int pthread_sigqueue(pthread_t thread, int number, const sigval value) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_sigqueue(thread, number, value);
    siginfo_t info = sent_to_thread(number);
    info.si_code = SI_QUEUE;
    info.si_value = value;
    if (const auto sent = send_signal(thread, number, info)) return *sent;
    return is_thread_of_other_node(thread) ? ESRCH : real_pthread_sigqueue(thread, number, value);
}

unsigned alarm(unsigned seconds) noexcept {
    const unsigned left = real_alarm(seconds);
    if (HIROBA_CALL_OF_PROGRAM()) deliver_deferred();
    return left;
}

int setitimer(__itimer_which_t which, const struct itimerval* wanted,
              struct itimerval* before) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_setitimer(which, wanted, before);
    const itimerval next = wanted != nullptr ? *wanted : itimerval{};
    const int result = real_setitimer(which, wanted, before);
    if (result == 0 && wanted != nullptr) interval_timer_changed(which, next.it_interval);
    deliver_deferred();
    return result;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec* wanted,
                  struct itimerspec* before) noexcept {
    const int result = real_timer_settime(timer, flags, wanted, before);
    if (HIROBA_CALL_OF_PROGRAM()) deliver_deferred();
    return result;
}

int timer_delete(timer_t timer) noexcept {
    const int result = real_timer_delete(timer);
    if (HIROBA_CALL_OF_PROGRAM()) deliver_deferred();
    return result;
}

int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_sigaltstack(stack, old);
    if (stack != nullptr) note_kept_by_thread();
    return set_stack(stack, old);
}

}  // extern "C"
