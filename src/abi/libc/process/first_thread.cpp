// SPDX-License-Identifier: BSD-3-Clause
// Role: see first_thread.hpp; interposes the calls of libc that take these numbers.
#include "abi/libc/process/first_thread.hpp"

#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/threads/kept_by_threads.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;

// Written before the program's threads run; read by any thread. 0: not on this node.
constinit std::atomic<pid_t> process{0}, first_thread{0};

// Other nodes: node 0's process and the node's own. Written before the program runs.
constinit std::atomic<pid_t> program_process{0}, own_process{0};

struct IdCall {
    std::uint16_t number;
    std::uint8_t argument;
    bool finds_elsewhere = false;  ///< it reaches a thread of another node
};

/// Calls with a number of a process.
constexpr IdCall process_rows[] = {
    {SYS_kill, 0},
    {SYS_tgkill, 0},
    {SYS_rt_sigqueueinfo, 0},
    {SYS_rt_tgsigqueueinfo, 0},
    {SYS_pidfd_open, 0},
    {SYS_prlimit64, 0},
    {SYS_getpgid, 0},
    {SYS_setpgid, 0},
    {SYS_getsid, 0},
    {SYS_process_vm_readv, 0},
    {SYS_process_vm_writev, 0},
    {SYS_move_pages, 0},
    {SYS_migrate_pages, 0},
    {SYS_kcmp, 0},
    {SYS_kcmp, 1},
};

/// Calls with a number of a thread; in some the argument before says of which kind it is.
constexpr IdCall rows[] = {
    {SYS_tgkill, 1, true},       {SYS_rt_tgsigqueueinfo, 1, true},
    {SYS_tkill, 0, true},        {SYS_sched_setaffinity, 0},
    {SYS_sched_getaffinity, 0},  {SYS_sched_setscheduler, 0},
    {SYS_sched_getscheduler, 0}, {SYS_sched_setparam, 0},
    {SYS_sched_getparam, 0},     {SYS_sched_setattr, 0},
    {SYS_sched_getattr, 0},      {SYS_sched_rr_get_interval, 0},
    {SYS_getpriority, 1},        {SYS_setpriority, 1},
    {SYS_ioprio_get, 1},         {SYS_ioprio_set, 1},
    {SYS_perf_event_open, 1},
};

constexpr std::size_t numbers = 512;
constexpr auto has_row = [] {
    std::array<bool, numbers> has{};
    for (const IdCall& row : rows) has[row.number] = true;
    for (const IdCall& row : process_rows) has[row.number] = true;
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
    const long signal = row.number == SYS_tgkill ? arguments[2] : arguments[1];
    const bool sends = row.number == SYS_tgkill || row.number == SYS_tkill;
    return sends && signal >= first && signal <= last;
}

/// Where a row names the process by `program`, or main's thread, which this node does not have.
void name_own_process(long number, pid_t program, long* arguments) noexcept {
    const auto name = [&](const IdCall& row) {
        if (row.number == number && arguments[row.argument] == program && !row.finds_elsewhere &&
            !names_another_kind(row, arguments))
            arguments[row.argument] = own_process.load(std::memory_order_relaxed);
    };
    for (const IdCall& row : process_rows) name(row);
    for (const IdCall& row : rows) name(row);
}

}  // namespace

void learn_program_process(pid_t node_0) noexcept {
    own_process.store(static_cast<pid_t>(kernel_call(SYS_getpid)));
    program_process.store(node_0);
}

pid_t process_for_program() noexcept {
    const auto own = static_cast<pid_t>(kernel_call(SYS_getpid));
    // Relaxed: as above.
    return own == own_process.load(std::memory_order_relaxed)
               ? program_process.load(std::memory_order_relaxed)
               : own;
}

void name_sender_for_program(siginfo_t& info) noexcept {
    const bool names_sender =
        info.si_code == SI_USER || info.si_code == SI_TKILL || info.si_code == SI_QUEUE;
    // Relaxed: as above. 0: node 0, whose number is the program's.
    const pid_t own = own_process.load(std::memory_order_relaxed);
    if (names_sender && own != 0 && info.si_pid == own)
        info.si_pid = program_process.load(std::memory_order_relaxed);
}

void become_first_thread() noexcept {
    first_thread.store(static_cast<pid_t>(kernel_call(SYS_gettid)));
    process.store(static_cast<pid_t>(kernel_call(SYS_getpid)));
}

void name_for_kernel(long number, long* arguments) noexcept {
    if (number < 0 || number >= static_cast<long>(numbers) ||
        !has_row[static_cast<std::size_t>(number)])
        return;
    // Relaxed: what is stored before the threads start is there.
    const pid_t program = program_process.load(std::memory_order_relaxed);
    if (program != 0) name_own_process(number, program, arguments);
    const pid_t known = process.load(std::memory_order_relaxed);
    if (known == 0) return;
    for (const IdCall& row : rows) {
        if (row.number != number || arguments[row.argument] != known) continue;
        if (names_another_kind(row, arguments) || is_of_libc(row, arguments)) continue;
        arguments[row.argument] = first_thread.load(std::memory_order_relaxed);
    }
}

pid_t number_for_kernel(pid_t thread) noexcept {
    // Relaxed: as above.
    return thread != 0 && thread == process.load(std::memory_order_relaxed)
               ? first_thread.load(std::memory_order_relaxed)
               : thread;
}

// Not inlined, so that test/cluster/switched_off.py can switch it off.
[[gnu::noinline]] pid_t number_for_program(pid_t thread) noexcept {
    return thread == first_thread.load(std::memory_order_relaxed)
               ? process.load(std::memory_order_relaxed)
               : thread;
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

pid_t getpid() noexcept {
    return HIROBA_CALL_OF_PROGRAM() ? process_for_program()
                                    : static_cast<pid_t>(hiroba::dsm::kernel_call(SYS_getpid));
}

pid_t gettid() noexcept {
    note_kept_by_caller(HIROBA_CALLER);
    const auto own = static_cast<pid_t>(hiroba::dsm::kernel_call(SYS_gettid));
    return HIROBA_CALL_OF_PROGRAM() ? number_for_program(own) : own;
}

int tgkill(pid_t to, pid_t thread, int signal) {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_tgkill, to, thread, signal));
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
