// SPDX-License-Identifier: BSD-3-Clause
// Role: interposes the commonest calls that hand buffers of the program to the kernel, so that they
// need no trap: each goes to perform_system_call(). What is not here is found by the trap
// (system_call_trap.hpp), or, where there is none, by the wrappers of paths.cpp.
// Invariant: a wrapper changes neither result nor errno of the call. stdio is here because libc
// passes large reads and writes on without a copy; its small ones copy in user mode and just fault.
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_call_trap.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/foreign_streams.hpp"
#include "abi/libc/files/remote_waits.hpp"
#include "abi/libc/files/standard_streams.hpp"
#include "abi/libc/process/signals.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"

extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);
}

HIROBA_REAL(read);
HIROBA_REAL(pread);
HIROBA_REAL(pread64);
HIROBA_REAL(readv);
HIROBA_REAL(preadv);
HIROBA_REAL(write);
HIROBA_REAL(pwrite);
HIROBA_REAL(pwrite64);
HIROBA_REAL(writev);
HIROBA_REAL(pwritev);
HIROBA_REAL(recv);
HIROBA_REAL(recvfrom);
HIROBA_REAL(recvmsg);
HIROBA_REAL(send);
HIROBA_REAL(sendto);
HIROBA_REAL(sendmsg);
HIROBA_REAL(fread);
HIROBA_REAL(fread_unlocked);
HIROBA_REAL(fwrite);
HIROBA_REAL(fwrite_unlocked);
HIROBA_REAL(setvbuf);
HIROBA_REAL(poll);
HIROBA_REAL(ppoll);
HIROBA_REAL(select);
HIROBA_REAL(pselect);
HIROBA_REAL(epoll_wait);
HIROBA_REAL(__read_chk);
HIROBA_REAL(__pread_chk);
HIROBA_REAL(__pread64_chk);
HIROBA_REAL(__recv_chk);
HIROBA_REAL(__recvfrom_chk);
HIROBA_REAL(__fread_chk);
HIROBA_REAL(__fread_unlocked_chk);

using namespace hiroba::abi;

namespace {

/// A buffer of stdio, pinned where the calls that stdio makes inside itself are not examined.
class PinnedStreamBuffer {
public:
    PinnedStreamBuffer(const void* buffer, size_t bytes, bool write) noexcept
        : buffer_(buffer), bytes_(bytes) {
        pinned_ = !system_calls_are_examined() && bytes > 0 && is_global(buffer);
        if (pinned_) world()->memory->pin(buffer, bytes, write);
    }
    PinnedStreamBuffer(const PinnedStreamBuffer&) = delete;
    PinnedStreamBuffer& operator=(const PinnedStreamBuffer&) = delete;
    ~PinnedStreamBuffer() {
        if (pinned_) world()->memory->unpin(buffer_, bytes_);
    }

private:
    const void* buffer_;
    size_t bytes_;
    bool pinned_;
};

using hiroba::dsm::kernel::as_word;

/// wait_elsewhere(), of functions that are cancellation points.
std::optional<long> wait_as_point(long number, const CallArguments& arguments) {
    const CancellableCall call{true};
    call.begin();
    const auto result = wait_elsewhere(number, arguments);
    call.end();
    if (result && *result == -EINTR) end_cancellation_point();
    return result;
}

/// As libc's functions tell it.
int result_of(long result) noexcept {
    if (!hiroba::dsm::kernel_failed(result)) return static_cast<int>(result);
    errno = static_cast<int>(-result);
    return -1;
}

void let_kernel_select(int count, fd_set* a, fd_set* b, fd_set* c) noexcept {
    const auto bytes = static_cast<std::size_t>(count < 0 ? 0 : (count + 63) / 64 * 8);
    for (fd_set* const set : {a, b, c}) let_kernel_write(set, bytes);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

ssize_t read(int fd, void* buffer, size_t bytes) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_read, fd, buffer, bytes);
    return real_read(fd, buffer, bytes);
}
ssize_t __read_chk(int fd, void* buffer, size_t bytes, size_t room) {
    const bool fits = bytes <= room;  // else libc ends the process
    if (fits && spans_nodes()) return call_from(HIROBA_CALLER, SYS_read, fd, buffer, bytes);
    return real___read_chk(fd, buffer, bytes, room);
}
ssize_t pread(int fd, void* buffer, size_t bytes, off_t at) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_pread64, fd, buffer, bytes, at);
    return real_pread(fd, buffer, bytes, at);
}
ssize_t pread64(int fd, void* buffer, size_t bytes, off64_t at) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_pread64, fd, buffer, bytes, at);
    return real_pread64(fd, buffer, bytes, at);
}
ssize_t __pread_chk(int fd, void* buffer, size_t bytes, off_t at, size_t room) {
    const bool fits = bytes <= room;  // else libc ends the process
    if (fits && spans_nodes()) return call_from(HIROBA_CALLER, SYS_pread64, fd, buffer, bytes, at);
    return real___pread_chk(fd, buffer, bytes, at, room);
}
ssize_t __pread64_chk(int fd, void* buffer, size_t bytes, off64_t at, size_t room) {
    const bool fits = bytes <= room;  // else libc ends the process
    if (fits && spans_nodes()) return call_from(HIROBA_CALLER, SYS_pread64, fd, buffer, bytes, at);
    return real___pread64_chk(fd, buffer, bytes, at, room);
}
ssize_t readv(int fd, const iovec* vector, int count) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_readv, fd, vector, count);
    return real_readv(fd, vector, count);
}
ssize_t preadv(int fd, const iovec* vector, int count, off_t at) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_preadv, fd, vector, count, at, 0);
    return real_preadv(fd, vector, count, at);
}

ssize_t write(int fd, const void* buffer, size_t bytes) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_write, fd, buffer, bytes);
    return real_write(fd, buffer, bytes);
}
ssize_t pwrite(int fd, const void* buffer, size_t bytes, off_t at) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_pwrite64, fd, buffer, bytes, at);
    return real_pwrite(fd, buffer, bytes, at);
}
ssize_t pwrite64(int fd, const void* buffer, size_t bytes, off64_t at) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_pwrite64, fd, buffer, bytes, at);
    return real_pwrite64(fd, buffer, bytes, at);
}
ssize_t writev(int fd, const iovec* vector, int count) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_writev, fd, vector, count);
    return real_writev(fd, vector, count);
}
ssize_t pwritev(int fd, const iovec* vector, int count, off_t at) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_pwritev, fd, vector, count, at, 0);
    return real_pwritev(fd, vector, count, at);
}

ssize_t recv(int fd, void* buffer, size_t bytes, int flags) {
    if (spans_nodes())
        return call_from(HIROBA_CALLER, SYS_recvfrom, fd, buffer, bytes, flags, 0, 0);
    return real_recv(fd, buffer, bytes, flags);
}
ssize_t __recv_chk(int fd, void* buffer, size_t bytes, size_t room, int flags) {
    const bool fits = bytes <= room;  // else libc ends the process
    if (fits && spans_nodes())
        return call_from(HIROBA_CALLER, SYS_recvfrom, fd, buffer, bytes, flags, 0, 0);
    return real___recv_chk(fd, buffer, bytes, room, flags);
}
ssize_t recvfrom(int fd, void* buffer, size_t bytes, int flags, sockaddr* from, socklen_t* length) {
    if (spans_nodes())
        return call_from(HIROBA_CALLER, SYS_recvfrom, fd, buffer, bytes, flags, from, length);
    return real_recvfrom(fd, buffer, bytes, flags, from, length);
}
ssize_t __recvfrom_chk(int fd, void* buffer, size_t bytes, size_t room, int flags, sockaddr* from,
                       socklen_t* length) {
    const bool fits = bytes <= room;  // else libc ends the process
    if (fits && spans_nodes())
        return call_from(HIROBA_CALLER, SYS_recvfrom, fd, buffer, bytes, flags, from, length);
    return real___recvfrom_chk(fd, buffer, bytes, room, flags, from, length);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_recvmsg, fd, message, flags);
    return real_recvmsg(fd, message, flags);
}
ssize_t send(int fd, const void* buffer, size_t bytes, int flags) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_sendto, fd, buffer, bytes, flags, 0, 0);
    return real_send(fd, buffer, bytes, flags);
}
ssize_t sendto(int fd, const void* buffer, size_t bytes, int flags, const sockaddr* to,
               socklen_t length) {
    if (spans_nodes())
        return call_from(HIROBA_CALLER, SYS_sendto, fd, buffer, bytes, flags, to, length);
    return real_sendto(fd, buffer, bytes, flags, to, length);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    if (spans_nodes()) return call_from(HIROBA_CALLER, SYS_sendmsg, fd, message, flags);
    return real_sendmsg(fd, message, flags);
}

size_t fread(void* buffer, size_t size, size_t count, FILE* stream) {
    size_t got = 0;
    if (read_far(buffer, size, count, stream, &got)) return got;
    const PinnedStreamBuffer pinned{buffer, size * count, true};
    return real_fread(buffer, size, count, near(stream));
}
size_t fread_unlocked(void* buffer, size_t size, size_t count, FILE* stream) {
    size_t got = 0;
    if (read_far(buffer, size, count, stream, &got)) return got;
    const PinnedStreamBuffer pinned{buffer, size * count, true};
    return real_fread_unlocked(buffer, size, count, near(stream));
}
size_t __fread_chk(void* buffer, size_t room, size_t size, size_t count, FILE* stream) {
    size_t got = 0;
    const bool fits = size == 0 || count <= room / size;
    if (fits && read_far(buffer, size, count, stream, &got)) return got;
    const PinnedStreamBuffer pinned{buffer, size * count, true};
    return real___fread_chk(buffer, room, size, count, near(stream));
}
size_t __fread_unlocked_chk(void* buffer, size_t room, size_t size, size_t count, FILE* stream) {
    size_t got = 0;
    const bool fits = size == 0 || count <= room / size;
    if (fits && read_far(buffer, size, count, stream, &got)) return got;
    const PinnedStreamBuffer pinned{buffer, size * count, true};
    return real___fread_unlocked_chk(buffer, room, size, count, near(stream));
}
size_t fwrite(const void* buffer, size_t size, size_t count, FILE* stream) {
    const PinnedStreamBuffer pinned{buffer, size * count, false};
    return real_fwrite(buffer, size, count, Output(stream).near_stream());
}
size_t fwrite_unlocked(const void* buffer, size_t size, size_t count, FILE* stream) {
    const PinnedStreamBuffer pinned{buffer, size * count, false};
    return real_fwrite_unlocked(buffer, size, count, Output(stream).near_stream());
}

/// A stream's buffer is read and written by the kernel long after this call: one in global memory
/// is declined, and libc takes its own, which the program cannot tell from the outside.
int setvbuf(FILE* stream, char* buffer, int mode, size_t bytes) noexcept {
    const bool takes_bytes = buffer != nullptr && mode == _IOFBF;
    if (is_far(stream)) return buffer_far(stream, mode, takes_bytes ? bytes : 0);
    if (const int number = standard_number(stream); number >= 0 && spans_nodes())
        return buffer_standard_stream(number, mode, takes_bytes ? bytes : 0);
    return real_setvbuf(stream, is_global(buffer) ? nullptr : buffer, mode, bytes);
}
void setbuf(FILE* stream, char* buffer) noexcept {
    setvbuf(stream, buffer, buffer != nullptr ? _IOFBF : _IONBF, BUFSIZ);
}
void setbuffer(FILE* stream, char* buffer, size_t bytes) noexcept {
    setvbuf(stream, buffer, buffer != nullptr ? _IOFBF : _IONBF, bytes);
}
void setlinebuf(FILE* stream) noexcept { setvbuf(stream, nullptr, _IOLBF, 0); }

int poll(pollfd* descriptors, nfds_t count, int timeout_ms) {
    if (spans_nodes())
        return static_cast<int>(call_from(HIROBA_CALLER, SYS_poll, descriptors, count, timeout_ms));
    return real_poll(descriptors, count, timeout_ms);
}
int ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* mask) {
    if (HIROBA_CALL_OF_PROGRAM()) {
        const auto elsewhere = wait_as_point(
            SYS_ppoll,
            {{as_word(descriptors), static_cast<long>(count), as_word(timeout), as_word(mask)}});
        if (elsewhere) return result_of(*elsewhere);
    }
    let_kernel_write(descriptors, count * sizeof *descriptors);
    sigset_t room;
    return real_ppoll(descriptors, count, timeout,
                      spans_nodes() ? without_faults(mask, room) : mask);
}
int select(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional, timeval* timeout) {
    if (spans_nodes())
        return static_cast<int>(
            call_from(HIROBA_CALLER, SYS_select, count, to_read, to_write, exceptional, timeout));
    return real_select(count, to_read, to_write, exceptional, timeout);
}
int pselect(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional,
            const timespec* timeout, const sigset_t* mask) {
    if (HIROBA_CALL_OF_PROGRAM()) {
        const auto elsewhere =
            wait_as_point(SYS_pselect6, {{count, as_word(to_read), as_word(to_write),
                                          as_word(exceptional), as_word(timeout), as_word(&mask)}});
        if (elsewhere) return result_of(*elsewhere);
    }
    let_kernel_select(count, to_read, to_write, exceptional);
    sigset_t room;
    return real_pselect(count, to_read, to_write, exceptional, timeout,
                        spans_nodes() ? without_faults(mask, room) : mask);
}
int epoll_wait(int fd, epoll_event* events, int count, int timeout_ms) {
    if (spans_nodes())
        return static_cast<int>(
            call_from(HIROBA_CALLER, SYS_epoll_wait, fd, events, count, timeout_ms));
    return real_epoll_wait(fd, events, count, timeout_ms);
}

}  // extern "C"
