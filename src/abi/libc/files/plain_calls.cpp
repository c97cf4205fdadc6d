// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes further functions of libc that are one system call with the same arguments. They
// would be found by the trap too; here they cost 3 us less, and work where there is no trap.
// Invariant: as in buffers.cpp: result and errno are the kernel's.
#include <fcntl.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/real.hpp"

// Newer than some C libraries that this is built with.
extern "C" {
int close_range(unsigned first, unsigned last, int flags) noexcept;
void closefrom(int first) noexcept;
}

HIROBA_REAL(lseek);
HIROBA_REAL(lseek64);
HIROBA_REAL(close);
HIROBA_REAL(dup2);
HIROBA_REAL(dup3);
HIROBA_REAL(close_range);
HIROBA_REAL(closefrom);
HIROBA_REAL(fsync);
HIROBA_REAL(fdatasync);
HIROBA_REAL(ftruncate);
HIROBA_REAL(fstatat);
HIROBA_REAL(statfs);
HIROBA_REAL(fstatfs);
HIROBA_REAL(utimensat);
HIROBA_REAL(readlinkat);
HIROBA_REAL(symlink);
HIROBA_REAL(link);
HIROBA_REAL(truncate);
HIROBA_REAL(chmod);
HIROBA_REAL(unlinkat);
HIROBA_REAL(mkdirat);
HIROBA_REAL(socketpair);
HIROBA_REAL(pipe);
HIROBA_REAL(pipe2);
HIROBA_REAL(bind);
HIROBA_REAL(connect);
HIROBA_REAL(accept);
HIROBA_REAL(accept4);
HIROBA_REAL(getsockname);
HIROBA_REAL(getpeername);
HIROBA_REAL(getsockopt);
HIROBA_REAL(setsockopt);
HIROBA_REAL(sendmmsg);
HIROBA_REAL(recvmmsg);
HIROBA_REAL(epoll_ctl);
HIROBA_REAL(getrandom);
HIROBA_REAL(uname);
HIROBA_REAL(sysinfo);
HIROBA_REAL(times);
HIROBA_REAL(getrusage);
HIROBA_REAL(getrlimit);
HIROBA_REAL(setrlimit);
HIROBA_REAL(waitpid);
HIROBA_REAL(wait4);
HIROBA_REAL(fcntl);
HIROBA_REAL(fcntl64);
HIROBA_REAL(ioctl);

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

off_t lseek(int fd, off_t at, int whence) noexcept {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_lseek, fd, at, whence);
    return real_lseek(fd, at, whence);
}
off64_t lseek64(int fd, off64_t at, int whence) noexcept {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_lseek, fd, at, whence);
    return real_lseek64(fd, at, whence);
}
int close(int fd) {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_close, fd));
    return real_close(fd);
}
int dup2(int fd, int number) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_dup2, fd, number));
    return real_dup2(fd, number);
}
int dup3(int fd, int number, int flags) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_dup3, fd, number, flags));
    return real_dup3(fd, number, flags);
}
int close_range(unsigned first, unsigned last, int flags) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, __NR_close_range, first, last, flags));
    return real_close_range(first, last, flags);
}
void closefrom(int first) noexcept {
    const unsigned from = first < 0 ? 0 : static_cast<unsigned>(first);
    if (spans_nodes()) {
        call_from(HIROBA_CALLER, __NR_close_range, from, ~0u, 0);
    } else {
        real_closefrom(first);
    }
}
int fsync(int fd) {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_fsync, fd));
    return real_fsync(fd);
}
int fdatasync(int fd) {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_fdatasync, fd));
    return real_fdatasync(fd);
}
int ftruncate(int fd, off_t bytes) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_ftruncate, fd, bytes));
    return real_ftruncate(fd, bytes);
}
int fstatat(int fd, const char* path, struct stat* status, int flags) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_newfstatat, fd, path, status, flags));
    return real_fstatat(fd, path, status, flags);
}
int statfs(const char* path, struct statfs* status) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_statfs, path, status));
    return real_statfs(path, status);
}
int fstatfs(int fd, struct statfs* status) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_fstatfs, fd, status));
    return real_fstatfs(fd, status);
}
int utimensat(int fd, const char* path, const timespec* times, int flags) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_utimensat, fd, path, times, flags));
    return real_utimensat(fd, path, times, flags);
}
ssize_t readlinkat(int fd, const char* path, char* buffer, size_t bytes) noexcept {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_readlinkat, fd, path, buffer, bytes);
    return real_readlinkat(fd, path, buffer, bytes);
}
int symlink(const char* from, const char* to) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_symlink, from, to));
    return real_symlink(from, to);
}
int link(const char* from, const char* to) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_link, from, to));
    return real_link(from, to);
}
int truncate(const char* path, off_t bytes) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_truncate, path, bytes));
    return real_truncate(path, bytes);
}
int chmod(const char* path, mode_t mode) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_chmod, path, mode));
    return real_chmod(path, mode);
}
int unlinkat(int fd, const char* path, int flags) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_unlinkat, fd, path, flags));
    return real_unlinkat(fd, path, flags);
}
int mkdirat(int fd, const char* path, mode_t mode) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_mkdirat, fd, path, mode));
    return real_mkdirat(fd, path, mode);
}
int socketpair(int domain, int type, int protocol, int* ends) noexcept {
    if (spans_nodes())
        return static_cast<int>(
            call_from(HIROBA_CALLER, SYS_socketpair, domain, type, protocol, ends));
    return real_socketpair(domain, type, protocol, ends);
}
int pipe(int* ends) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_pipe, ends));
    return real_pipe(ends);
}
int pipe2(int* ends, int flags) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_pipe2, ends, flags));
    return real_pipe2(ends, flags);
}
int bind(int fd, const sockaddr* address, socklen_t bytes) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_bind, fd, address, bytes));
    return real_bind(fd, address, bytes);
}
int connect(int fd, const sockaddr* address, socklen_t bytes) {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_connect, fd, address, bytes));
    return real_connect(fd, address, bytes);
}
int accept(int fd, sockaddr* address, socklen_t* bytes) {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_accept, fd, address, bytes));
    return real_accept(fd, address, bytes);
}
int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_accept4, fd, address, bytes, flags));
    return real_accept4(fd, address, bytes, flags);
}
int getsockname(int fd, sockaddr* address, socklen_t* bytes) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_getsockname, fd, address, bytes));
    return real_getsockname(fd, address, bytes);
}
int getpeername(int fd, sockaddr* address, socklen_t* bytes) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_getpeername, fd, address, bytes));
    return real_getpeername(fd, address, bytes);
}
int getsockopt(int fd, int level, int option, void* value, socklen_t* bytes) noexcept {
    if (spans_nodes())
        return static_cast<int>(
            call_from(HIROBA_CALLER, SYS_getsockopt, fd, level, option, value, bytes));
    return real_getsockopt(fd, level, option, value, bytes);
}
int setsockopt(int fd, int level, int option, const void* value, socklen_t bytes) noexcept {
    if (spans_nodes())
        return static_cast<int>(
            call_from(HIROBA_CALLER, SYS_setsockopt, fd, level, option, value, bytes));
    return real_setsockopt(fd, level, option, value, bytes);
}
int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_sendmmsg, fd, messages, count, flags));
    return real_sendmmsg(fd, messages, count, flags);
}
int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
    if (spans_nodes())
        return static_cast<int>(
            call_from(HIROBA_CALLER, SYS_recvmmsg, fd, messages, count, flags, timeout));
    return real_recvmmsg(fd, messages, count, flags, timeout);
}
int epoll_ctl(int fd, int what, int other, epoll_event* event) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_epoll_ctl, fd, what, other, event));
    return real_epoll_ctl(fd, what, other, event);
}
ssize_t getrandom(void* buffer, size_t bytes, unsigned flags) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_getrandom, buffer, bytes, flags);
    return real_getrandom(buffer, bytes, flags);
}
int uname(utsname* name) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_uname, name));
    return real_uname(name);
}
int sysinfo(struct sysinfo* facts) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_sysinfo, facts));
    return real_sysinfo(facts);
}
int getrusage(int whose, rusage* usage) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_getrusage, whose, usage));
    return real_getrusage(whose, usage);
}
int getrlimit(int which, rlimit* limit) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_getrlimit, which, limit));
    return real_getrlimit(which, limit);
}
int setrlimit(int which, const rlimit* limit) noexcept {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_setrlimit, which, limit));
    return real_setrlimit(which, limit);
}
clock_t times(tms* ticks) noexcept {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_times, ticks);
    return real_times(ticks);
}
pid_t waitpid(pid_t process, int* status, int options) {
    if (spans_nodes())
        return static_cast<pid_t>(call_from(HIROBA_CALLER, SYS_wait4, process, status, options, 0));
    return real_waitpid(process, status, options);
}
/// wait4(), which libc's header declares as one that no cancelling leaves.
pid_t wait_for_process(pid_t process, int* status, int options, rusage* usage) __asm__("wait4");
pid_t wait_for_process(pid_t process, int* status, int options, rusage* usage) {
    if (spans_nodes())
        return static_cast<pid_t>(
            call_from(HIROBA_CALLER, SYS_wait4, process, status, options, usage));
    return real_wait4(process, status, options, usage);
}

/// utimensat() of a descriptor: no path.
int futimens(int fd, const timespec* times) noexcept {
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_utimensat, fd, 0, times, 0));
}

// The third argument is read as a word whether there is one or not, as libc does.
int fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void* const argument = va_arg(list, void*);
    va_end(list);
    if (!spans_nodes()) return real_fcntl(fd, command, argument);
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_fcntl, fd, command, argument));
}
int fcntl64(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void* const argument = va_arg(list, void*);
    va_end(list);
    if (!spans_nodes()) return real_fcntl64(fd, command, argument);
    return static_cast<int>(call_from(HIROBA_CALLER, SYS_fcntl, fd, command, argument));
}
int ioctl(int fd, unsigned long request, ...) noexcept {
    va_list list;
    va_start(list, request);
    void* const argument = va_arg(list, void*);
    va_end(list);
    if (!spans_nodes()) return real_ioctl(fd, request, argument);
    return static_cast<int>(call_to_end_from(HIROBA_CALLER, SYS_ioctl, fd, request, argument));
}

}  // extern "C"
