// SPDX-License-Identifier: BSD-3-Clause
// Role: the table itself, by subject. Sizes are the kernel's for x86-64.
#include "abi/libc/calls/system_call_table.hpp"

#include <sys/syscall.h>

#include <array>

namespace hiroba::abi {
namespace {

using enum Use;

constexpr std::uint16_t stat_bytes = 144, statfs_bytes = 120, statx_bytes = 256, time_bytes = 16,
                        rusage_bytes = 144, siginfo_bytes = 128, mask_bytes = 8, pollfd_bytes = 8,
                        epoll_bytes = 12, queue_bytes = 64, control_bytes = 256,
                        scheduling_bytes = 56, sembuf_bytes = 6, ipc_bytes = 128;

// Newer than the oldest headers.
constexpr std::uint16_t pidfd_send_signal = 424, pidfd_open = 434, pidfd_getfd = 438,
                        epoll_pwait2 = 441, memfd_secret = 447;

/// A call whose argument 0 is a descriptor.
constexpr SystemCall on(std::uint16_t number, Touch a = {}, Touch b = {}, Touch c = {},
                        Touch d = {}) {
    return {number, true, false, {a, b, c, d}};
}
/// A call that makes a descriptor.
constexpr SystemCall opening(std::uint16_t number, Touch a = {}, Touch b = {}) {
    return {number, false, true, {a, b}};
}
/// Any other.
constexpr SystemCall plain(std::uint16_t number, Touch a = {}, Touch b = {}, Touch c = {},
                           Touch d = {}, Touch e = {}) {
    return {number, false, false, {a, b, c, d, e}};
}
/// A call that makes a descriptor from one.
constexpr SystemCall from(std::uint16_t number, Touch a = {}, Touch b = {}) {
    return {number, true, true, {a, b}};
}

constexpr SystemCall rows[] = {
    // Reading and writing.
    on(SYS_read, {1, out, 1, 2}),
    on(SYS_write, {1, in, 1, 2}),
    on(SYS_pread64, {1, out, 1, 2}),
    on(SYS_pwrite64, {1, in, 1, 2}),
    on(SYS_readv, {1, out_vector, 0, 2}),
    on(SYS_writev, {1, in_vector, 0, 2}),
    on(SYS_preadv, {1, out_vector, 0, 2}),
    on(SYS_pwritev, {1, in_vector, 0, 2}),
    on(SYS_preadv2, {1, out_vector, 0, 2}),
    on(SYS_pwritev2, {1, in_vector, 0, 2}),
    on(SYS_lseek),
    on(SYS_close),
    on(SYS_fsync),
    on(SYS_fdatasync),
    on(SYS_ftruncate),
    on(SYS_fallocate),
    on(SYS_fadvise64),
    on(SYS_flock),
    on(SYS_readahead),
    on(SYS_syncfs),
    on(SYS_sync_file_range),
    on(SYS_tee),
    on(SYS_fchdir),
    on(SYS_fchmod),
    on(SYS_fchown),
    on(SYS_sendfile, {2, out, 8}),
    on(SYS_copy_file_range, {1, out, 8}, {3, out, 8}),
    on(SYS_splice, {1, out, 8}, {3, out, 8}),
    plain(SYS_process_vm_readv, {1, out_vector, 0, 2}, {3, in_vector, 0, 4}),
    plain(SYS_process_vm_writev, {1, in_vector, 0, 2}, {3, out_vector, 0, 4}),
    on(SYS_vmsplice, {1, in_vector, 0, 2}),
    on(SYS_ioctl, {2, out, control_bytes}),
    on(SYS_fcntl, {2, out, 32}),
    on(SYS_fstat, {1, out, stat_bytes}),
    on(SYS_fstatfs, {1, out, statfs_bytes}),
    on(SYS_getdents, {1, out, 1, 2}),
    on(SYS_getdents64, {1, out, 1, 2}),
    on(SYS_fgetxattr, {1, text}, {2, out, 1, 3}),
    on(SYS_fsetxattr, {1, text}, {2, in, 1, 3}),
    on(SYS_flistxattr, {1, out, 1, 2}),
    on(SYS_fremovexattr, {1, text}),
    from(SYS_dup),

    // Paths. The *at calls may name a directory by argument 0, or by AT_FDCWD.
    opening(SYS_open, {0, text}),
    opening(SYS_openat, {1, text}),
    opening(SYS_openat2, {1, text}, {2, in, 1, 3}),
    opening(SYS_creat, {0, text}),
    opening(SYS_memfd_create, {0, text}),
    plain(SYS_stat, {0, text}, {1, out, stat_bytes}),
    plain(SYS_lstat, {0, text}, {1, out, stat_bytes}),
    plain(SYS_newfstatat, {1, text}, {2, out, stat_bytes}),
    plain(SYS_statx, {1, text}, {4, out, statx_bytes}),
    plain(SYS_statfs, {0, text}, {1, out, statfs_bytes}),
    plain(SYS_access, {0, text}),
    plain(SYS_faccessat, {1, text}),
    plain(SYS_faccessat2, {1, text}),
    plain(SYS_unlink, {0, text}),
    plain(SYS_unlinkat, {1, text}),
    plain(SYS_rename, {0, text}, {1, text}),
    plain(SYS_renameat, {1, text}, {3, text}),
    plain(SYS_renameat2, {1, text}, {3, text}),
    plain(SYS_link, {0, text}, {1, text}),
    plain(SYS_linkat, {1, text}, {3, text}),
    plain(SYS_symlink, {0, text}, {1, text}),
    plain(SYS_symlinkat, {0, text}, {2, text}),
    plain(SYS_readlink, {0, text}, {1, out, 1, 2}),
    plain(SYS_readlinkat, {1, text}, {2, out, 1, 3}),
    plain(SYS_mkdir, {0, text}),
    plain(SYS_mkdirat, {1, text}),
    plain(SYS_rmdir, {0, text}),
    plain(SYS_chdir, {0, text}),
    plain(SYS_chmod, {0, text}),
    plain(SYS_fchmodat, {1, text}),
    plain(SYS_chown, {0, text}),
    plain(SYS_lchown, {0, text}),
    plain(SYS_fchownat, {1, text}),
    plain(SYS_truncate, {0, text}),
    plain(SYS_mknod, {0, text}),
    plain(SYS_mknodat, {1, text}),
    plain(SYS_utime, {0, text}, {1, in, 16}),
    plain(SYS_utimes, {0, text}, {1, in, 32}),
    plain(SYS_utimensat, {1, text}, {2, in, 32}),
    plain(SYS_getcwd, {0, out, 1, 1}),
    plain(SYS_getxattr, {0, text}, {1, text}, {2, out, 1, 3}),
    plain(SYS_lgetxattr, {0, text}, {1, text}, {2, out, 1, 3}),
    plain(SYS_setxattr, {0, text}, {1, text}, {2, in, 1, 3}),
    plain(SYS_lsetxattr, {0, text}, {1, text}, {2, in, 1, 3}),
    plain(SYS_listxattr, {0, text}, {1, out, 1, 2}),
    plain(SYS_llistxattr, {0, text}, {1, out, 1, 2}),
    plain(SYS_removexattr, {0, text}, {1, text}),
    plain(SYS_lremovexattr, {0, text}, {1, text}),
    plain(SYS_execve, {0, text}, {1, texts}, {2, texts}),
    plain(SYS_execveat, {1, text}, {2, texts}, {3, texts}),

    // Sockets.
    opening(SYS_socket),
    from(SYS_accept, {1, address, 0, 2}),
    from(SYS_accept4, {1, address, 0, 2}),
    on(SYS_bind, {1, in, 1, 2}),
    on(SYS_connect, {1, in, 1, 2}),
    on(SYS_getsockname, {1, address, 0, 2}),
    on(SYS_getpeername, {1, address, 0, 2}),
    on(SYS_getsockopt, {3, address, 0, 4}),
    on(SYS_setsockopt, {3, in, 1, 4}),
    on(SYS_sendto, {1, in, 1, 2}, {4, in, 1, 5}),
    on(SYS_recvfrom, {1, out, 1, 2}, {4, address, 0, 5}),
    on(SYS_sendmsg, {1, in_message}),
    on(SYS_recvmsg, {1, out_message}),
    on(SYS_sendmmsg, {1, in_messages, 0, 2}),
    on(SYS_recvmmsg, {1, out_messages, 0, 2}, {4, out, time_bytes}),
    on(SYS_listen),
    on(SYS_shutdown),
    plain(SYS_socketpair, {3, out, 8}),
    plain(SYS_pipe, {0, out, 8}),
    plain(SYS_pipe2, {0, out, 8}),

    // Waiting for descriptors.
    plain(SYS_poll, {0, out, pollfd_bytes, 1}),
    plain(SYS_ppoll, {0, out, pollfd_bytes, 1}, {2, out, time_bytes}, {3, in, mask_bytes}),
    plain(SYS_select, {1, bits}, {2, bits}, {3, bits}, {4, out, time_bytes}),
    plain(SYS_pselect6, {1, bits}, {2, bits}, {3, bits}, {4, out, time_bytes}, {5, in, 16}),
    opening(SYS_epoll_create),
    opening(SYS_epoll_create1),
    on(SYS_epoll_ctl, {3, in, epoll_bytes}),
    on(SYS_epoll_wait, {1, out, epoll_bytes, 2}),
    on(SYS_epoll_pwait, {1, out, epoll_bytes, 2}, {4, in, mask_bytes}),
    on(epoll_pwait2, {1, out, epoll_bytes, 2}, {3, in, time_bytes}, {4, in, mask_bytes}),
    opening(SYS_eventfd2),
    opening(SYS_timerfd_create),
    on(SYS_timerfd_settime, {2, in, 32}, {3, out, 32}),
    on(SYS_timerfd_gettime, {1, out, 32}),
    opening(SYS_inotify_init1),
    opening(SYS_inotify_init),
    on(SYS_inotify_add_watch, {1, text}),
    on(SYS_inotify_rm_watch),
    opening(SYS_eventfd),
    from(SYS_signalfd, {1, in, mask_bytes}),
    from(SYS_signalfd4, {1, in, mask_bytes}),
    opening(SYS_fanotify_init),
    opening(SYS_userfaultfd),
    opening(SYS_perf_event_open, {0, in, 112}),
    opening(pidfd_open),
    from(pidfd_getfd),
    on(pidfd_send_signal, {2, in, siginfo_bytes}),
    opening(memfd_secret),
    on(SYS_fanotify_mark, {4, text}),
    opening(SYS_mq_open, {0, text}, {3, in, queue_bytes}),
    on(SYS_mq_timedsend, {1, in, 1, 2}, {4, in, time_bytes}),
    on(SYS_mq_timedreceive, {1, out, 1, 2}, {3, out, 4}, {4, in, time_bytes}),
    on(SYS_mq_getsetattr, {1, in, queue_bytes}, {2, out, queue_bytes}),
    plain(SYS_mq_unlink, {0, text}),

    // Semaphores and queues of System V. What the last argument of a control call is depends.
    plain(SYS_semop, {1, in, sembuf_bytes, 2}),
    plain(SYS_semtimedop, {1, in, sembuf_bytes, 2}, {3, in, time_bytes}),
    plain(SYS_semctl, {3, out, ipc_bytes}),
    plain(SYS_msgsnd, {1, in_letter, 0, 2}),
    plain(SYS_msgrcv, {1, out_letter, 0, 2}),
    plain(SYS_msgctl, {2, out, ipc_bytes}),

    // Time.
    plain(SYS_clock_gettime, {1, out, time_bytes}),
    plain(SYS_clock_getres, {1, out, time_bytes}),
    plain(SYS_clock_nanosleep, {2, in, time_bytes}, {3, out, time_bytes}),
    plain(SYS_nanosleep, {0, in, time_bytes}, {1, out, time_bytes}),
    plain(SYS_gettimeofday, {0, out, 16}, {1, out, 8}),
    plain(SYS_time, {0, out, 8}),
    plain(SYS_times, {0, out, 32}),
    plain(SYS_getitimer, {1, out, 32}),
    plain(SYS_setitimer, {1, in, 32}, {2, out, 32}),
    plain(SYS_timer_create, {1, in, 64}, {2, out, 4}),
    plain(SYS_timer_settime, {2, in, 32}, {3, out, 32}),
    plain(SYS_timer_gettime, {1, out, 32}),

    // The process and the machine.
    plain(SYS_getrandom, {0, out, 1, 1}),
    plain(SYS_uname, {0, out, 390}),
    plain(SYS_sysinfo, {0, out, 112}),
    plain(SYS_getrusage, {1, out, rusage_bytes}),
    plain(SYS_getrlimit, {1, out, 16}),
    plain(SYS_setrlimit, {1, in, 16}),
    plain(SYS_prlimit64, {2, in, 16}, {3, out, 16}),
    plain(SYS_wait4, {1, out, 4}, {3, out, rusage_bytes}),
    plain(SYS_waitid, {2, out, siginfo_bytes}, {4, out, rusage_bytes}),
    plain(SYS_getgroups, {1, out, 4, 0}),
    plain(SYS_getresuid, {0, out, 4}, {1, out, 4}, {2, out, 4}),
    plain(SYS_getresgid, {0, out, 4}, {1, out, 4}, {2, out, 4}),
    plain(SYS_sched_getaffinity, {2, out, 1, 1}),
    plain(SYS_sched_setaffinity, {2, in, 1, 1}),
    plain(SYS_sched_getparam, {1, out, 4}),
    plain(SYS_sched_setparam, {1, in, 4}),
    plain(SYS_sched_setscheduler, {2, in, 4}),
    plain(SYS_sched_setattr, {1, in, scheduling_bytes}),
    plain(SYS_sched_getattr, {1, out, 1, 2}),
    plain(SYS_sched_rr_get_interval, {1, out, time_bytes}),
    plain(SYS_getcpu, {0, out, 4}, {1, out, 4}),
    plain(SYS_mincore, {2, out, 1}),
    plain(SYS_futex, {0, in, 4}),
    plain(SYS_rt_sigaction, {1, in, 32}, {2, out, 32}),
    plain(SYS_rt_sigpending, {0, out, mask_bytes}),
    plain(SYS_rt_sigtimedwait, {0, in, mask_bytes}, {1, out, siginfo_bytes}, {2, in, time_bytes}),
    plain(SYS_rt_sigqueueinfo, {2, in, siginfo_bytes}),
    plain(SYS_rt_tgsigqueueinfo, {3, in, siginfo_bytes}),
    plain(SYS_rt_sigsuspend, {0, in, mask_bytes}),
};

constexpr std::size_t numbers = 512;

constexpr auto make_index() {
    std::array<std::uint8_t, numbers> index{};
    std::uint8_t next = 1;
    for (const SystemCall& row : rows) index[row.number] = next++;
    return index;
}
static_assert(std::size(rows) < 255);
constexpr auto row_of = make_index();

}  // namespace

const SystemCall* find_system_call(long number) noexcept {
    if (number < 0 || number >= static_cast<long>(numbers)) return nullptr;
    const std::uint8_t row = row_of[static_cast<std::size_t>(number)];
    return row == 0 ? nullptr : &rows[row - 1];
}

std::span<const SystemCall> all_system_calls() noexcept { return rows; }

}  // namespace hiroba::abi
