// SPDX-License-Identifier: BSD-3-Clause
// Role: see process_ids.hpp; interposes the calls of libc that tell or take these numbers.
#include "abi/libc/process/process_ids.hpp"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/world.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;

// Written before the program's threads of this node run; read by any thread.
constinit std::atomic<pid_t> shown{0}, parent_shown{0};  ///< 0: as the kernel says
constinit std::atomic<pid_t> process{0}, parent{0}, first_thread{0};

enum Names : std::uint8_t { none, a_process, a_thread };

struct IdCall {
    std::uint16_t number;
    std::uint8_t argument;
    Names names;
};
constexpr std::uint16_t pidfd_open = 434;

/// Calls with a number of a process or a thread; in some the argument before says of which kind.
constexpr IdCall rows[] = {
    {SYS_kill, 0, a_process},
    {SYS_rt_sigqueueinfo, 0, a_process},
    {SYS_tgkill, 0, a_process},
    {SYS_tgkill, 1, a_thread},
    {SYS_rt_tgsigqueueinfo, 0, a_process},
    {SYS_rt_tgsigqueueinfo, 1, a_thread},
    {SYS_tkill, 0, a_thread},
    {SYS_getpgid, 0, a_process},
    {SYS_setpgid, 0, a_process},
    {SYS_getsid, 0, a_process},
    {pidfd_open, 0, a_process},
    {SYS_process_vm_readv, 0, a_process},
    {SYS_process_vm_writev, 0, a_process},
    {SYS_prlimit64, 0, a_process},
    {SYS_migrate_pages, 0, a_process},
    {SYS_move_pages, 0, a_process},
    {SYS_kcmp, 0, a_process},
    {SYS_kcmp, 1, a_process},
    {SYS_sched_setaffinity, 0, a_thread},
    {SYS_sched_getaffinity, 0, a_thread},
    {SYS_sched_setscheduler, 0, a_thread},
    {SYS_sched_getscheduler, 0, a_thread},
    {SYS_sched_setparam, 0, a_thread},
    {SYS_sched_getparam, 0, a_thread},
    {SYS_sched_setattr, 0, a_thread},
    {SYS_sched_getattr, 0, a_thread},
    {SYS_sched_rr_get_interval, 0, a_thread},
    {SYS_getpriority, 1, a_thread},
    {SYS_setpriority, 1, a_thread},
    {SYS_ioprio_get, 1, a_thread},
    {SYS_ioprio_set, 1, a_thread},
    {SYS_perf_event_open, 1, a_thread},
};

constexpr std::size_t numbers = 512;
constexpr auto has_row = [] {
    std::array<bool, numbers> has{};
    for (const IdCall& row : rows) has[row.number] = true;
    return has;
}();

/// getpriority() and ioprio_get() and their like: PRIO_PROCESS is 0 and IOPRIO_WHO_PROCESS 1;
/// others name groups and users.
bool names_another_kind(const IdCall& row, const long* arguments) noexcept {
    if (row.number == SYS_getpriority || row.number == SYS_setpriority)
        return arguments[0] != PRIO_PROCESS;
    if (row.number == SYS_ioprio_get || row.number == SYS_ioprio_set) return arguments[0] != 1;
    return false;
}

/// A signal by which libc has its own threads change their ids, or end: libc means what it says.
bool is_of_libc(const IdCall& row, const long* arguments) noexcept {
    constexpr long first = 32, last = 33;
    if (row.names != a_thread) return false;
    const long signal = row.number == SYS_tgkill ? arguments[2] : arguments[1];
    const bool sends = row.number == SYS_tgkill || row.number == SYS_tkill;
    return sends && signal >= first && signal <= last;
}

}  // namespace

ProcessIds own_process_ids() noexcept {
    return {static_cast<pid_t>(kernel_call(SYS_getpid)),
            static_cast<pid_t>(kernel_call(SYS_getppid))};
}

void show_process_ids(const ProcessIds& ids) noexcept {
    parent_shown.store(ids.parent);
    shown.store(ids.process);
}

void become_first_thread() noexcept {
    const ProcessIds own = own_process_ids();
    process.store(own.process);
    parent.store(own.parent);
    first_thread.store(static_cast<pid_t>(kernel_call(SYS_gettid)));
    if (world()->job.self.value == 0) show_process_ids(own);
}

// Relaxed below: what is stored before the threads start or a region begins is there.

pid_t shown_process(pid_t number) noexcept {
    const pid_t known = shown.load(std::memory_order_relaxed);
    return known != 0 && number == process.load(std::memory_order_relaxed) ? known : number;
}

pid_t shown_parent(pid_t number) noexcept {
    // The parent of a child of vfork() is this process.
    if (number == process.load(std::memory_order_relaxed)) return shown_process(number);
    const pid_t known = parent_shown.load(std::memory_order_relaxed);
    return known != 0 && number == parent.load(std::memory_order_relaxed) ? known : number;
}

// As the kernel says: who looks into /proc for it is to find the thread that it is.
pid_t shown_thread(pid_t number) noexcept { return number; }

void name_own_process(long number, long* arguments) noexcept {
    if (number < 0 || number >= static_cast<long>(numbers) ||
        !has_row[static_cast<std::size_t>(number)])
        return;
    const pid_t known = shown.load(std::memory_order_relaxed);
    if (known == 0) return;
    for (const IdCall& row : rows) {
        if (row.number != number || arguments[row.argument] != known) continue;
        if (names_another_kind(row, arguments) || is_of_libc(row, arguments)) continue;
        arguments[row.argument] = row.names == a_process ? process.load() : first_thread.load();
    }
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

pid_t getpid() noexcept { return static_cast<pid_t>(call_from(HIROBA_CALLER, SYS_getpid)); }

pid_t getppid() noexcept { return static_cast<pid_t>(call_from(HIROBA_CALLER, SYS_getppid)); }

pid_t gettid() noexcept { return static_cast<pid_t>(call_from(HIROBA_CALLER, SYS_gettid)); }

int kill(pid_t to, int signal) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_kill, to, signal));
}

int tgkill(pid_t to, pid_t thread, int signal) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_tgkill, to, thread, signal));
}

int sigqueue(pid_t to, int signal, const sigval value) noexcept {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    info.si_pid = static_cast<pid_t>(hiroba::dsm::kernel_call(SYS_getpid));
    info.si_uid = static_cast<uid_t>(hiroba::dsm::kernel_call(SYS_getuid));
    info.si_value = value;
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_rt_sigqueueinfo, to, signal, &info));
}

pid_t getpgid(pid_t of) noexcept {
    return static_cast<pid_t>(call_from(HIROBA_CALLER, SYS_getpgid, of));
}

int setpgid(pid_t of, pid_t group) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_setpgid, of, group));
}

pid_t getsid(pid_t of) noexcept {
    return static_cast<pid_t>(call_from(HIROBA_CALLER, SYS_getsid, of));
}

int getpriority(__priority_which_t which, id_t who) noexcept {
    const long found = call_from(HIROBA_CALLER, SYS_getpriority, static_cast<int>(which), who);
    return found < 0 ? -1 : static_cast<int>(20 - found);
}

int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* processors) noexcept {
    const long written = call_from(HIROBA_CALLER, SYS_sched_getaffinity, thread, bytes, processors);
    if (written < 0) return -1;
    const auto filled = static_cast<std::size_t>(written);
    memset(reinterpret_cast<char*>(processors) + filled, 0, bytes - filled);
    return 0;
}

int sched_getscheduler(pid_t thread) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_sched_getscheduler, thread));
}

int sched_getparam(pid_t thread, sched_param* parameters) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_sched_getparam, thread, parameters));
}

}  // extern "C"
