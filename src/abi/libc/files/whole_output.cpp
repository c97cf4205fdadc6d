// SPDX-License-Identifier: BSD-3-Clause
// How a line stays whole: libc writes a full buffer out in the middle of a call. So stdout gets a
// buffer that is seldom full, and after each call it is written out if it holds what libc's would.
// A pipe takes more than PIPE_BUF (4096) bytes in pieces when it is full, and other processes write
// between them: hence the turns, by a record lock on the file itself, at a place where no program
// has any. The kernel frees it should its process die.
#include "abi/libc/files/whole_output.hpp"

#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "abi/libc/files/standard_streams.hpp"
#include "abi/libc/real.hpp"
#include "base/bell.hpp"
#include "base/latch.hpp"
#include "dsm/memory/kernel_calls.hpp"

HIROBA_REAL(setvbuf);
HIROBA_REAL(fflush_unlocked);
HIROBA_REAL(flockfile);
HIROBA_REAL(ftrylockfile);
HIROBA_REAL(funlockfile);
HIROBA_REAL(__fpending);

namespace hiroba::abi {
namespace {

constexpr std::size_t room_bytes = std::size_t{1} << 20;
constexpr std::size_t due_bytes_max = std::size_t{64} << 10;
constexpr std::size_t due_bytes_usual = 4096;

constinit char room[room_bytes];  ///< pages that no unit of output reaches stay untouched
constinit std::atomic<bool> several{false};
constinit std::atomic<std::size_t> due_bytes{due_bytes_usual};

/// A thread between flockfile() and funlockfile() of stdout or stderr: how often it has locked, and
/// whether it writes at once and so has the turn, too. Under the stream's lock.
struct Hold {
    unsigned times = 0;
    bool has_turn = false;
};
constinit Hold holds[2];
/// Whether one has stdout.
constinit std::atomic<bool> output_is_held{false};

/// Whether processes can take turns at `fd`: a lock on a file of another machine may wait for it.
bool takes_turns(int fd) noexcept {
    constexpr auto network_file_system = 0x6969;
    struct stat status;
    struct statfs system;
    if (fstat(fd, &status) != 0) return false;
    return !S_ISREG(status.st_mode) || fstatfs(fd, &system) != 0 ||
           system.f_type != network_file_system;
}

/// Turns at descriptor 1 or 2.
struct Turn {
    std::atomic<ThreadContext*> owner{nullptr};
    Bell ended;            ///< of turns; threads of this process sleep on it
    unsigned times = 0;    ///< the owner's
    bool is_kept = false;  ///< since its first time: by flockfile()
    bool between_processes = false;

    bool take(ThreadContext* self) noexcept {
        ThreadContext* none = nullptr;
        return owner.compare_exchange_strong(none, self);
    }
};
constinit Turn turns[2];

Turn& turn_of(long fd) noexcept { return turns[fd - 1]; }

// Both descriptors may have one file. Three of its bytes are locked: stdout's, the writer's,
// stderr's. A write has its descriptor's and the writer's. A thread that keeps a stream locked has
// the stream's alone, so that output to the other stream goes on meanwhile. The kernel reads the
// requests: they lie outside of the stack, which may be global.
constexpr struct flock bytes_of_turn(short type, off_t first, off_t count) {
    return {type, SEEK_SET, (off_t{1} << 62) + first, count, 0};
}
struct FileLock {
    constexpr FileLock(off_t first, off_t count)
        : take(bytes_of_turn(F_WRLCK, first, count)), leave(bytes_of_turn(F_UNLCK, first, count)) {}
    struct flock take, leave;
};
constexpr FileLock to_write[] = {{0, 2}, {1, 2}}, to_keep[] = {{0, 1}, {2, 1}};
constexpr FileLock to_write_kept{1, 1};

/// Without a lock, where there is none to have, lines longer than a page may be cut. The kernel
/// takes a process for one thread: that others of it wait for each other is no deadlock.
void lock_file(long fd, const struct flock& how) noexcept {
    for (;;) {
        const long result = dsm::kernel_call(SYS_fcntl, fd, F_SETLKW, &how);
        if (result != -EINTR && result != -EDEADLK) return;
        static constexpr timespec moment{0, 100'000};
        if (result == -EDEADLK) dsm::kernel_call(SYS_nanosleep, &moment, 0);
    }
}

constexpr int unbuffered = 0x0002, line_buffered = 0x0200;  // of libio

bool is_fully_buffered(const FILE* stream) noexcept {
    return (stream->_flags & (unbuffered | line_buffered)) == 0;
}

/// 1 or 2 for the near stdout or stderr once there are several nodes, else -1.
int output_number(const FILE* stream) noexcept {
    // Relaxed: set before the second thread.
    const int number = several.load(std::memory_order_relaxed) ? standard_number(stream) : -1;
    return number == STDIN_FILENO ? -1 : number;
}

void enter_turn(long fd, bool to_be_kept = false) noexcept {
    Turn& turn = turn_of(fd);
    ThreadContext* const self = &this_thread();
    // Relaxed: a thread finds itself there only if it has put itself there.
    if (turn.owner.load(std::memory_order_relaxed) != self) {
        for (;;) {
            const std::uint32_t seen = turn.ended.rings();
            if (turn.take(self)) break;
            turn.ended.sleep_past(seen);
        }
        turn.is_kept = to_be_kept;
        if (turn.between_processes) lock_file(fd, (to_be_kept ? to_keep : to_write)[fd - 1].take);
    } else if (turn.times == 1 && turn.is_kept && turn.between_processes) {
        lock_file(fd, to_write_kept.take);
    }
    ++turn.times;
}

void leave_turn_of(long fd) noexcept {
    Turn& turn = turn_of(fd);
    if (--turn.times != 0) {
        if (turn.times == 1 && turn.is_kept && turn.between_processes)
            lock_file(fd, to_write_kept.leave);
        return;
    }
    if (turn.between_processes) lock_file(fd, (turn.is_kept ? to_keep : to_write)[fd - 1].leave);
    turn.owner.store(nullptr);
    turn.ended.ring();
}

/// The caller has the stream's lock: it comes before the turn, as in a call of libc that writes.
int write_out_locked(FILE* stream) noexcept {
    int result;
    {
        const WritingTurn turn{STDOUT_FILENO};
        result = real_fflush_unlocked(stream);
    }
    real_funlockfile(stream);
    return result;
}

/// False: another thread has the stream.
bool try_write_out(FILE* stream) noexcept {
    if (real_ftrylockfile(stream) != 0) return false;
    write_out_locked(stream);
    return true;
}

/// False: another thread has had the stream for as long as a call that prints may last.
bool lock_unless_kept(FILE* stream) noexcept {
    constexpr std::uint32_t yields_max = 256;
    for (Backoff backoff; backoff.yields() < yields_max; backoff.pause())
        if (real_ftrylockfile(stream) == 0) return true;
    return false;
}

}  // namespace

WritingTurn::WritingTurn(long fd) noexcept {
    const bool shared = several.load(std::memory_order_relaxed);  // set before the second thread
    if (!shared || (fd != STDOUT_FILENO && fd != STDERR_FILENO)) return;
    fd_ = fd;
    enter_turn(fd);
}

WritingTurn::~WritingTurn() {
    if (fd_ >= 0) leave_turn_of(fd_);
}

UnbufferedCall::UnbufferedCall(FILE* stream) noexcept {
    const int number = output_number(stream);
    if (number < 0 || (stream->_flags & unbuffered) == 0) return;
    stream_ = stream;
    fd_ = number;
    real_flockfile(stream);
    enter_turn(fd_);
}

UnbufferedCall::~UnbufferedCall() {
    if (stream_ == nullptr) return;
    leave_turn_of(fd_);
    real_funlockfile(stream_);
}

void prepare_whole_output() noexcept {
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; ++fd)
        turn_of(fd).between_processes = takes_turns(fd);
    several.store(true, std::memory_order_relaxed);
    struct stat status;
    if (isatty(STDOUT_FILENO) != 0 || fstat(STDOUT_FILENO, &status) != 0) return;
    const auto block = static_cast<std::size_t>(std::max<blksize_t>(status.st_blksize, 0));
    set_output_buffering(_IOFBF, block != 0 ? block : due_bytes_usual);
}

int set_output_buffering(int mode, std::size_t bytes) noexcept {
    FILE* const stream = standard_output();
    if (bytes != 0) {
        // Relaxed: it says when, not what.
        due_bytes.store(std::min(bytes, due_bytes_max), std::memory_order_relaxed);
    }
    return real_setvbuf(stream, mode == _IONBF ? nullptr : room, mode, room_bytes);
}

void end_of_output(FILE* stream) noexcept {
    if (stream != standard_output() || !several.load(std::memory_order_relaxed)) return;
    // Unlocked: what another thread is just printing is its own business.
    if (stream->_IO_buf_base != room || !is_fully_buffered(stream)) return;
    if (real___fpending(stream) < due_bytes.load(std::memory_order_relaxed)) return;
    if (!output_is_held.load(std::memory_order_relaxed)) try_write_out(stream);
}

int flush_standard_output() noexcept {
    FILE* const stream = standard_output();
    real_flockfile(stream);
    return write_out_locked(stream);
}

void write_out_at_end(FILE* stream) noexcept {
    const bool locked = lock_unless_kept(stream);
    const int number = output_number(stream);
    // The thread that keeps the stream may have the turn, too: what is written here is its output.
    if (!locked && number >= 0 && holds[number - 1].has_turn)
        turn_of(number).owner.store(&this_thread());
    {
        const WritingTurn turn{number};
        real_fflush_unlocked(stream);
    }
    if (locked) real_funlockfile(stream);
}

void write_out_standard_output() noexcept {
    constexpr std::uint32_t yields_before_sleep = 64;
    FILE* const stream = standard_output();
    Backoff backoff;
    while (real___fpending(stream) > 0 && !output_is_held.load(std::memory_order_acquire)) {
        if (try_write_out(stream)) return;
        backoff.pause();
        if (backoff.yields() < yields_before_sleep) continue;
        static constexpr timespec moment{0, 100'000};  // its output may be stuck in a full pipe
        dsm::kernel_call(SYS_nanosleep, &moment, 0);
    }
}

void stream_locked(FILE* stream) noexcept {
    const int number = output_number(stream);
    if (number < 0) return;
    Hold& hold = holds[number - 1];
    if (hold.times++ != 0) return;
    if (number == STDOUT_FILENO) {
        try_write_out(stream);
        output_is_held.store(true, std::memory_order_release);  // pairs with who writes out
    }
    hold.has_turn = !is_fully_buffered(stream);
    if (hold.has_turn) enter_turn(number, true);
}

void stream_unlocked(FILE* stream) noexcept {
    const int number = output_number(stream);
    if (number < 0) return;
    Hold& hold = holds[number - 1];
    if (hold.times == 0 || --hold.times != 0) return;
    if (number == STDOUT_FILENO) {
        output_is_held.store(false, std::memory_order_release);  // as above
        end_of_output(stream);
    }
    if (hold.has_turn) leave_turn_of(number);
    hold.has_turn = false;
}

}  // namespace hiroba::abi
