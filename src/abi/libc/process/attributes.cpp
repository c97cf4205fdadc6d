// SPDX-License-Identifier: BSD-3-Clause
// Role: what is done about a row of the table of attributes, and the functions of libc by which a
// program changes what is refused: with calls that are not examined they are all there is to see.
// Invariant: children of fork() are ordinary processes: nothing is refused to them.
#include "abi/libc/process/attributes.hpp"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/process/attribute_table.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/thread_attributes.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

HIROBA_REAL(nice);
HIROBA_REAL(pthread_setaffinity_np);
HIROBA_REAL(pthread_setschedparam);
HIROBA_REAL(pthread_setschedprio);
HIROBA_REAL(pthread_setname_np);

namespace hiroba::abi {
namespace {

/// A program that asks whether the kernel has filters gives none: the kernel refuses that itself.
bool only_asks(long number, long first_argument, long third_argument) noexcept {
    constexpr long filter = 1;
    return number == SYS_seccomp && first_argument == filter && third_argument == 0;
}

}  // namespace

void before_attribute_call(long number, long first_argument, long third_argument) noexcept {
    const Attribute* const changed = attribute_changed_by(number, first_argument);
    if (changed == nullptr) return;
    if (changed->way == Way::inherited) thread_attribute_changed();
    if (changed->way != Way::refused) return;
    if (!is_node_process() || only_asks(number, first_argument, third_argument)) return;
    die(exit_environment,
        "%s (system call %ld) refused: it would hold on node %u alone, and not for the threads of "
        "the other nodes. Set it for the job as a whole, around hiroba run, or run on one node "
        "(-n 1)",
        changed->name, number, world()->job.self.value);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int prctl(int option, ...) noexcept {
    va_list list;
    va_start(list, option);
    long a[4];
    for (long& word : a) word = va_arg(list, long);
    va_end(list);
    return static_cast<int>(
        call_from(HIROBA_CALLER, SYS_prctl, long{option}, a[0], a[1], a[2], a[3]));
}

int unshare(int flags) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_unshare, flags));
}

int setns(int descriptor, int kinds) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_setns, descriptor, kinds));
}

int chroot(const char* path) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_chroot, path));
}

int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* processors) noexcept {
    return static_cast<int>(
        call_from(HIROBA_CALLER, SYS_sched_setaffinity, thread, bytes, processors));
}

int sched_setscheduler(pid_t thread, int policy, const sched_param* parameters) noexcept {
    return static_cast<int>(
        call_from(HIROBA_CALLER, SYS_sched_setscheduler, thread, policy, parameters));
}

int sched_setparam(pid_t thread, const sched_param* parameters) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_sched_setparam, thread, parameters));
}

int setpriority(__priority_which_t which, id_t who, int value) noexcept {
    return static_cast<int>(
        call_from(HIROBA_CALLER, SYS_setpriority, static_cast<int>(which), who, value));
}

int nice(int more) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) thread_attribute_changed();
    return real_nice(more);
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* processors) noexcept {
    if (!HIROBA_CALL_OF_PROGRAM()) return real_pthread_setaffinity_np(thread, bytes, processors);
    thread_attribute_changed();
    let_kernel_read(processors, bytes);
    return real_pthread_setaffinity_np(thread, bytes, processors);
}

int pthread_setschedparam(pthread_t thread, int policy, const sched_param* parameters) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) thread_attribute_changed();
    return real_pthread_setschedparam(thread, policy, parameters);
}

int pthread_setschedprio(pthread_t thread, int priority) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) thread_attribute_changed();
    return real_pthread_setschedprio(thread, priority);
}

int pthread_setname_np(pthread_t thread, const char* name) noexcept {
    if (HIROBA_CALL_OF_PROGRAM()) {
        thread_attribute_changed();
        let_kernel_read_text(name);
    }
    return real_pthread_setname_np(thread, name);
}

/// A bare call of libc's without a header of its own.
int capset(void* header, const void* data) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_capset, header, data));
}

}  // extern "C"
