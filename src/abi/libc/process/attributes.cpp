// SPDX-License-Identifier: BSD-3-Clause
// Role: what is done about a row of the table of attributes, and the functions of libc by which a
// program changes what is refused: with calls that are not examined they are all there is to see.
// Invariant: children of fork() are ordinary processes: nothing is refused to them.
#include "abi/libc/process/attributes.hpp"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/process/attribute_table.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/process/thread_attributes.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"

HIROBA_REAL(nice);
HIROBA_REAL(pthread_setaffinity_np);
HIROBA_REAL(pthread_setschedparam);
HIROBA_REAL(pthread_setschedprio);

namespace hiroba::abi {
namespace {

/// A program that asks whether the kernel has filters gives none: the kernel refuses that itself.
bool only_asks(long number, long first_argument, long third_argument) noexcept {
    constexpr long filter = 1;
    return number == SYS_seccomp && first_argument == filter && third_argument == 0;
}

constexpr int options[ProcessSettings::count] = {PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER,
                                                 PR_SET_THP_DISABLE};
constinit Latch changing;
constinit ProcessSettings settings;  ///< under `changing`

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

void after_attribute_call(long number, long first_argument, long second_argument) noexcept {
    if (number != SYS_prctl || !is_node_process()) return;
    for (int i = 0; i < ProcessSettings::count; ++i) {
        if (first_argument != options[i]) continue;
        {
            const std::scoped_lock guard{changing};
            settings.has[i] = true;
            settings.value[i] = second_argument;
        }
        process_state_changed("prctl()");
    }
}

[[gnu::noinline]] long perform_prctl(const long* arguments) noexcept {
    constexpr std::size_t name_bytes = 16;
    PinnedBuffers buffers;
    const auto pin = [&](std::size_t bytes, bool write) {
        buffers.add(reinterpret_cast<const void*>(arguments[1]), bytes, write);
    };
    switch (arguments[0]) {
        case PR_GET_NAME: pin(name_bytes, true); break;
        case PR_SET_NAME: let_kernel_read_text(reinterpret_cast<const char*>(arguments[1])); break;
        case PR_GET_TID_ADDRESS: pin(sizeof(void*), true); break;
        case PR_GET_PDEATHSIG:
        case PR_GET_CHILD_SUBREAPER:
        case PR_GET_TSC:
        case PR_GET_UNALIGN:
        case PR_GET_FPEMU:
        case PR_GET_FPEXC:
        case PR_GET_ENDIAN: pin(sizeof(int), true); break;
        default: break;
    }
    return dsm::kernel_call(SYS_prctl, arguments[0], arguments[1], arguments[2], arguments[3],
                            arguments[4]);
}

ProcessSettings process_settings() noexcept {
    const std::scoped_lock guard{changing};
    return settings;
}

void take_process_settings(const ProcessSettings& wanted) noexcept {
    const std::scoped_lock guard{changing};
    for (int i = 0; i < ProcessSettings::count; ++i) {
        if (!wanted.has[i] || (settings.has[i] && settings.value[i] == wanted.value[i])) continue;
        const long result = dsm::kernel_call(SYS_prctl, options[i], wanted.value[i], 0, 0, 0);
        if (result != 0) {
            die(exit_environment, "prctl(%d, %ld), which node 0 has, fails on node %u: %s",
                options[i], wanted.value[i], world()->job.self.value,
                strerror(static_cast<int>(-result)));
        }
    }
    settings = wanted;
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

int personality(unsigned long domain) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_personality, domain));
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

/// A bare call of libc's without a header of its own.
int capset(void* header, const void* data) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_capset, header, data));
}

}  // extern "C"
