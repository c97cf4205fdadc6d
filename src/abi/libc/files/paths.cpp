// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes the calls that hand path names and file status structures to the kernel.
// Invariant: as in buffers.cpp: accessible first, then libc; result and errno are libc's.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/libc/calls/direct_memory.hpp"
#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/real.hpp"

HIROBA_REAL(open);
HIROBA_REAL(open64);
HIROBA_REAL(openat);
HIROBA_REAL(openat64);
HIROBA_REAL(creat);
HIROBA_REAL(fopen);
HIROBA_REAL(fopen64);
HIROBA_REAL(stat);
HIROBA_REAL(stat64);
HIROBA_REAL(lstat);
HIROBA_REAL(lstat64);
HIROBA_REAL(fstat);
HIROBA_REAL(fstat64);
HIROBA_REAL(access);
HIROBA_REAL(unlink);
HIROBA_REAL(remove);
HIROBA_REAL(rename);
HIROBA_REAL(mkdir);
HIROBA_REAL(rmdir);
HIROBA_REAL(readlink);

using namespace hiroba::abi;

namespace {

/// The third argument of open(), read only where there is one.
mode_t mode_argument(int flags, va_list arguments) {
    const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    return creates ? va_arg(arguments, mode_t) : 0;
}

/// Through the kernel's cache (direct_memory.hpp), also where libc's calls are not examined.
int cached(int flags) noexcept { return spans_nodes() ? flags & ~O_DIRECT : flags; }

/// Calls libc's `real`, whose first argument is a path.
template <class Real, class... Rest>
auto with_path(const Real& real, const char* path, Rest... rest) {
    let_kernel_read_text(path);
    if (spans_nodes()) refuse_soft_dirty(path);
    return real(path, rest...);
}

template <class Real, class Status>
int with_path_and_status(const Real& real, const char* path, Status* status) {
    let_kernel_read_text(path);
    let_kernel_write(status, sizeof *status);
    return real(path, status);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    return with_path(real_open, path, cached(flags), mode);
}
int open64(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    return with_path(real_open64, path, cached(flags), mode);
}
int openat(int directory, const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    let_kernel_read_text(path);
    if (spans_nodes()) refuse_soft_dirty(path);
    return real_openat(directory, path, cached(flags), mode);
}
int openat64(int directory, const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    let_kernel_read_text(path);
    if (spans_nodes()) refuse_soft_dirty(path);
    return real_openat64(directory, path, cached(flags), mode);
}
int creat(const char* path, mode_t mode) { return with_path(real_creat, path, mode); }
FILE* fopen(const char* path, const char* mode) { return with_path(real_fopen, path, mode); }
FILE* fopen64(const char* path, const char* mode) { return with_path(real_fopen64, path, mode); }
int stat(const char* path, struct stat* status) noexcept {
    return with_path_and_status(real_stat, path, status);
}
int stat64(const char* path, struct stat64* status) noexcept {
    return with_path_and_status(real_stat64, path, status);
}
int lstat(const char* path, struct stat* status) noexcept {
    return with_path_and_status(real_lstat, path, status);
}
int lstat64(const char* path, struct stat64* status) noexcept {
    return with_path_and_status(real_lstat64, path, status);
}
int fstat(int fd, struct stat* status) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_fstat, fd, status));
    return real_fstat(fd, status);
}
int fstat64(int fd, struct stat64* status) noexcept {
    if (spans_nodes()) return static_cast<int>(call_from(HIROBA_CALLER, SYS_fstat, fd, status));
    return real_fstat64(fd, status);
}
int access(const char* path, int mode) noexcept { return with_path(real_access, path, mode); }
int unlink(const char* path) noexcept { return with_path(real_unlink, path); }
int remove(const char* path) noexcept { return with_path(real_remove, path); }
int rename(const char* from, const char* to) noexcept {
    let_kernel_read_text(from);
    let_kernel_read_text(to);
    return real_rename(from, to);
}
int mkdir(const char* path, mode_t mode) noexcept { return with_path(real_mkdir, path, mode); }
int rmdir(const char* path) noexcept { return with_path(real_rmdir, path); }
ssize_t readlink(const char* path, char* buffer, size_t bytes) noexcept {
    let_kernel_read_text(path);
    let_kernel_write(buffer, bytes);
    return real_readlink(path, buffer, bytes);
}

}  // extern "C"
