// SPDX-License-Identifier: BSD-3-Clause
// Role: the table itself. Numbers newer than the oldest headers are written out.
#include "abi/libc/process/attribute_table.hpp"

#include <linux/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

namespace hiroba::abi {
namespace {

using enum Bearer;
using enum Way;

constexpr std::uint16_t landlock_restrict_self = 446;
constexpr std::int16_t set_dispatch = 59, set_write_execute = 65, ambient_raise = 47;
constexpr std::int16_t seccomp_strict = 0, seccomp_filter = 1;

constexpr Attribute rows[] = {
    // What keeps a program from doing something must do so wherever its threads are.
    {"a seccomp filter",
     thread,
     refused,
     {{{SYS_seccomp, seccomp_strict}, {SYS_seccomp, seccomp_filter}, {SYS_prctl, PR_SET_SECCOMP}}}},
    {"a landlock rule set", thread, refused, {{{landlock_restrict_self}}}},
    {"a name space of its own", thread, refused, {{{SYS_unshare}, {SYS_setns}}}},
    {"another root directory", process, refused, {{{SYS_chroot}, {SYS_pivot_root}}}},
    {"a set of capabilities",
     thread,
     refused,
     {{{SYS_capset},
       {SYS_prctl, PR_CAPBSET_DROP},
       {SYS_prctl, PR_SET_SECUREBITS},
       {SYS_prctl, ambient_raise}}}},
    {"memory that is never written and executed",
     process,
     refused,
     {{{SYS_prctl, set_write_execute}}}},
    {"a dispatch of system calls", thread, refused, {{{SYS_prctl, set_dispatch}}}},
    {"a trap at reading the time stamp", thread, refused, {{{SYS_prctl, PR_SET_TSC}}}},

    // A new thread has its maker's; alone a region makes its threads.
    {"the signal mask", thread, inherited, {{{SYS_rt_sigprocmask}}}},
    {"rounding, traps and flush-to-zero", thread, inherited, {}},
    {"the processors it may use", thread, inherited, {{{SYS_sched_setaffinity}}}},
    {"the memory policy", thread, inherited, {{{SYS_set_mempolicy}}}},
    {"the scheduling policy",
     thread,
     inherited,
     {{{SYS_sched_setscheduler}, {SYS_sched_setparam}, {SYS_sched_setattr}}}},
    {"the nice value", thread, inherited, {{{SYS_setpriority}}}},
    {"the I/O priority", thread, inherited, {{{SYS_ioprio_set}}}},
    {"the timer slack", thread, inherited, {{{SYS_prctl, PR_SET_TIMERSLACK}}}},
    {"the promise of no new privileges", thread, inherited, {{{SYS_prctl, PR_SET_NO_NEW_PRIVS}}}},
    {"the treatment of broken memory", thread, inherited, {{{SYS_prctl, PR_MCE_KILL}}}},
    {"the execution domain", thread, inherited, {{{SYS_personality}}}},
    {"the thread's name", thread, inherited, {{{SYS_prctl, PR_SET_NAME}}}},

    // Node 0's is the program's.
    {"the working directory", process, shared, {{{SYS_chdir}, {SYS_fchdir}}}},
    {"the umask", process, shared, {{{SYS_umask}}}},
    {"the locale", process, shared, {}},
    {"user, group and further groups", process, shared, {}},
    {"the environment", process, shared, {}},
    {"the time zone", process, shared, {}},
    {"the actions of signals", process, shared, {{{SYS_rt_sigaction}}}},
    {"the resource limits", process, shared, {{{SYS_setrlimit}, {SYS_prlimit64}}}},
    {"the timers of processor time",
     process,
     shared,
     {{{SYS_setitimer, ITIMER_VIRTUAL}, {SYS_setitimer, ITIMER_PROF}}}},
    {"the number of the process", process, shared, {}},
    {"the number of its parent", process, own, {}},
    {"the filling of new blocks", process, shared, {}},
    {"the sequence of rand()", process, shared, {}},
    {"the sequence of drand48()", process, shared, {}},
    {"Fortran's arguments and options", process, shared, {}},
    {"Fortran's random streams", process, shared, {}},
    {"whether it dumps core", process, shared, {{{SYS_prctl, PR_SET_DUMPABLE}}}},
    {"whether orphans become its children",
     process,
     shared,
     {{{SYS_prctl, PR_SET_CHILD_SUBREAPER}}}},
    {"whether it has huge pages", process, shared, {{{SYS_prctl, PR_SET_THP_DISABLE}}}},

    // One node has it as one process has it; another has one of its own.
    {"the timer of real time and the alarm",
     process,
     own,
     {{{SYS_setitimer, ITIMER_REAL}, {SYS_alarm}}}},
    {"POSIX timers", process, own, {{{SYS_timer_create}}}},
    {"the process group", process, own, {{{SYS_setpgid}}}},
    {"the session", process, own, {{{SYS_setsid}}}},
    {"its children", process, own, {{{SYS_clone}, {SYS_vfork}}}},
    {"the clocks of processor time", process, own, {}},
    {"keyrings", process, own, {{{SYS_keyctl}}}},
    // A new thread has none of its maker's.
    {"the alternate signal stack", thread, own, {{{SYS_sigaltstack}}}},
    {"pending signals", thread, own, {}},
    {"the locale of uselocale()", thread, own, {}},
    {"cancellation", thread, own, {}},
    {"errno", thread, own, {}},
    {"the list of robust locks", thread, own, {{{SYS_set_robust_list}}}},
    {"the signal at its parent's death", thread, own, {{{SYS_prctl, PR_SET_PDEATHSIG}}}},
};

constexpr std::size_t numbers = 512;

/// By the number of a system call: whether it changes any. Nearly none does.
constexpr auto changes = [] {
    std::array<bool, numbers> any{};
    for (const Attribute& row : rows)
        for (const AttributeCall& call : row.calls) any[call.number] = call.number != 0;
    return any;
}();

}  // namespace

const Attribute* attribute_changed_by(long number, long first_argument) noexcept {
    if (number <= 0 || number >= static_cast<long>(numbers) ||
        !changes[static_cast<std::size_t>(number)])
        return nullptr;
    for (const Attribute& row : rows) {
        for (const AttributeCall& call : row.calls) {
            if (call.number == 0) break;
            if (call.number == number && (call.first_argument == AttributeCall::any ||
                                          call.first_argument == first_argument))
                return &row;
        }
    }
    return nullptr;
}

std::span<const Attribute> all_attributes() noexcept { return rows; }

}  // namespace hiroba::abi
