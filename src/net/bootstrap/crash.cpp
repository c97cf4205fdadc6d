// SPDX-License-Identifier: BSD-3-Clause
// Role: one packet with the end of a pipe: whoever has looked at the thread closes that end, and so
// does the kernel when the reader is gone.
#include "net/bootstrap/crash.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/clock.hpp"

namespace hiroba::net {

namespace {

/// Waits for `events` (or an end of the other side) of `fd` until `deadline_ns`. Raw: poll() is a
/// name that a process of ours may interpose.
bool await(int fd, short events, std::uint64_t deadline_ns) noexcept {
    for (;;) {
        const std::uint64_t now = now_ns();
        if (now >= deadline_ns) return false;
        pollfd entry{fd, events, 0};
        const long left_ms = static_cast<long>((deadline_ns - now) / 1'000'000 + 1);
        const long ready = syscall(SYS_poll, &entry, 1, left_ms);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

bool send_until(int socket, const ControlHeader& header, Bytes body, int fd,
                std::uint64_t deadline_ns) noexcept {
    for (;;) {
        const Transfer sent = send_packet(socket, header, body, fd, false);
        if (sent != Transfer::again) return sent == Transfer::done;
        if (!await(socket, POLLOUT, deadline_ns)) return false;
    }
}

}  // namespace

bool report_crash(const JobInfo& job, const CrashBody& crash, std::uint64_t limit_ns) noexcept {
    if (job.control_fd < 0) return false;
    const std::uint64_t deadline_ns = now_ns() + limit_ns;
    int ends[2];
    if (syscall(SYS_pipe2, ends, O_CLOEXEC) != 0) return false;
    const ControlHeader header{ControlKind::crashed, job.self.value, 0};
    const bool sent = send_until(job.control_fd, header, std::as_bytes(std::span(&crash, 1)),
                                 ends[1], deadline_ns);
    syscall(SYS_close, ends[1]);
    // Nothing is ever written: what wakes the wait is that the last writer has closed its end.
    const bool looked_at = sent && await(ends[0], 0, deadline_ns);
    syscall(SYS_close, ends[0]);
    return looked_at;
}

}  // namespace hiroba::net
