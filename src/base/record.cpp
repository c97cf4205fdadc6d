// SPDX-License-Identifier: BSD-3-Clause
// Role: the node's file, and the chunks that threads take of it.
// Invariant: a chunk's pages are there before its first record: a file that cannot grow ends the
// recording with a line, and no store of a thread meets the end of the disk.
#include "base/record.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>

#include "base/address_hint.hpp"
#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "base/trace.hpp"

namespace hiroba {
namespace {

constexpr int populate_for_writing = 23;  // MADV_POPULATE_WRITE, since Linux 5.14

/// The file, mapped; nullptr: none.
constinit std::atomic<std::byte*> file{nullptr};
constinit std::atomic<std::uint32_t> streams{0};

RecordFileHead& head_of(std::byte* mapped) noexcept {
    return *reinterpret_cast<RecordFileHead*>(mapped);
}

std::uint64_t clock_ns(clockid_t clock) noexcept {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

/// One phase of how many is recorded, at what the file holds already.
std::uint64_t stride_at(std::uint64_t chunks, std::uint64_t chunks_max) noexcept {
    if (chunks * 2 < chunks_max) return 1;
    if (chunks * 10 < chunks_max * 7) return 8;
    return chunks * 10 < chunks_max * 9 ? 64 : 1024;
}

/// Always recorded: few, and the others mean nothing without them.
bool is_of_every_phase(RecordKind kind) noexcept {
    switch (kind) {
        case RecordKind::member:
        case RecordKind::shape:
        case RecordKind::sample:
        case RecordKind::program:
        case RecordKind::allocated: return true;
        default: return false;
    }
}

void end_recording(const char* why) noexcept {
    if (!record_is_on.exchange(false)) return;
    say("the recording ends here: %s", why);
}

/// Makes the pages of a part of the file. False: it cannot grow. An old kernel does not tell.
bool has_pages(std::byte* at, std::size_t bytes) noexcept {
    return syscall(SYS_madvise, at, bytes, populate_for_writing) == 0 ||
           (errno != EFAULT && errno != ENOMEM);
}

/// False: there is no room.
bool take_chunk(RecordBuffer& buffer, const ThreadContext& thread) noexcept {
    std::byte* const mapped = file.load(std::memory_order_acquire);  // pairs with start_recording()
    if (mapped == nullptr) return false;
    RecordFileHead& head = head_of(mapped);
    const std::uint64_t number = std::atomic_ref{head.chunks}.fetch_add(1);
    if (number >= head.chunks_max) {
        std::atomic_ref{head.lost}.fetch_add(1);
        return false;
    }
    std::byte* const at = mapped + record_head_bytes + number * record_chunk_bytes;
    const int errno_before = errno;
    const bool full = !has_pages(at, record_chunk_bytes);
    errno = errno_before;
    if (full) {
        end_recording("its file cannot grow. Name a file with more room, HIROBA_RECORD");
        return false;
    }
    if (buffer.stream == 0) buffer.stream = streams.fetch_add(1) + 1;
    auto* const chunk = reinterpret_cast<RecordChunkHead*>(at);
    chunk->stream = buffer.stream;
    chunk->thread = thread.global_thread;
    chunk->ticks = record_ticks();
    chunk->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    chunk->magic = record_chunk_magic;
    buffer.next = reinterpret_cast<Record*>(at + sizeof(RecordChunkHead));
    buffer.end = buffer.next + record_chunk_records;
    return true;
}

void append(RecordBuffer& buffer, const ThreadContext& thread, RecordKind kind, std::uint64_t first,
            std::uint64_t second, std::uint64_t extra) noexcept {
    if (buffer.next == buffer.end && !take_chunk(buffer, thread)) return;
    // Taken first: a handler of a signal that records in between takes the next one.
    Record& record = *buffer.next++;
    record.time = record_ticks();
    record.first = first;
    record.second = second;
    // Release: who reads the file of a killed job finds a record whole or not at all.
    std::atomic_ref{record.head}.store(extra << 8 | static_cast<std::uint64_t>(kind),
                                       std::memory_order_release);
}

/// A number that nodes of one host share, and few others.
std::uint64_t host_number(const char* name) noexcept {
    std::uint64_t number = 0xcbf2'9ce4'8422'2325u;
    for (; *name != 0; ++name)
        number = (number ^ static_cast<unsigned char>(*name)) * 0x100'0000'01b3u;
    return number;
}

Error cannot(const std::string& path, const char* what) {
    return {ErrorKind::environment, path + " cannot be " + what + ": " + strerror(errno) +
                                        ". Name another file: hiroba run --record FILE"};
}

void note_processors(RecordFileHead& head) noexcept {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return;
    head.cores = static_cast<std::uint32_t>(CPU_COUNT(&set));
    for (unsigned i = 0; i < 64 * std::size(head.processors); ++i)
        if (CPU_ISSET(i, &set)) head.processors[i / 64] |= std::uint64_t{1} << i % 64;
}

/// Writes where this process has mapped what, for the names of addresses.
void copy_mappings(const std::string& path) noexcept {
    const long from = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const long to =
        syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    char bytes[4096];
    long got;
    while (from >= 0 && to >= 0 && (got = syscall(SYS_read, from, bytes, sizeof bytes)) > 0)
        if (syscall(SYS_write, to, bytes, got) != got) break;
    for (const long fd : {from, to})
        if (fd >= 0) syscall(SYS_close, fd);
}

/// How many chunks a file of that size has, and of the size that this process may write.
std::uint64_t chunks_in(std::uint64_t bytes_max) noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes_max = std::min<std::uint64_t>(bytes_max, limit.rlim_cur);
    const std::uint64_t bytes = bytes_max - std::min<std::uint64_t>(bytes_max, record_head_bytes);
    return std::max<std::uint64_t>(bytes / record_chunk_bytes, 1);
}

Result<std::byte*> map_file(const std::string& path, std::size_t bytes) {
    const int fd = static_cast<int>(
        syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (fd < 0) return cannot(path, "written");
    if (syscall(SYS_ftruncate, fd, bytes) != 0) {
        const Error error = cannot(path, "made as large as it may become");
        syscall(SYS_close, fd);
        return error;
    }
    const long address = syscall(SYS_mmap, address_hint(bytes), bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_NORESERVE, fd, 0);
    syscall(SYS_close, fd);
    if (address == -1) return cannot(path, "mapped");
    auto* const mapped = reinterpret_cast<std::byte*>(address);
    if (!has_pages(mapped, record_head_bytes)) return cannot(path, "filled");
    return mapped;
}

}  // namespace

Result<void> start_recording(const char* path, std::uint64_t bytes_max, std::uint32_t rank,
                             std::uint32_t nodes, std::uint32_t threads) {
    const std::string own = std::string(path) + "." + std::to_string(rank);
    const std::uint64_t chunks_max = chunks_in(bytes_max);
    const auto mapped = map_file(own, record_head_bytes + chunks_max * record_chunk_bytes);
    if (!mapped) return mapped.error();
    if (rank == 0) copy_mappings(std::string(path) + ".maps");
    RecordFileHead& head = head_of(*mapped);
    gethostname(head.host_name, sizeof head.host_name - 1);
    head.rank = rank;
    head.nodes = nodes;
    head.threads = threads;
    note_processors(head);
    head.chunks_max = chunks_max;
    head.host = host_number(head.host_name);
    head.ticks = record_ticks();
    head.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    head.realtime_ns = clock_ns(CLOCK_REALTIME);
    std::copy(std::begin(record_magic), std::end(record_magic), head.magic);
    file.store(*mapped, std::memory_order_release);  // pairs: take_chunk()
    // A forked child has the same pages, and the same place in them.
    pthread_atfork(nullptr, nullptr, [] { record_is_on = false; });
    record_is_on.store(true);
    return {};
}

void note_block_bytes(std::uint64_t bytes) noexcept {
    if (std::byte* const mapped = file.load(std::memory_order_acquire))
        head_of(mapped).block_bytes = bytes;
}

RecordBuffer* record_buffer() noexcept {
    ThreadContext& thread = this_thread();
    return thread.trace != nullptr ? &thread.trace->recorded : nullptr;
}

void record_always(RecordKind kind, std::uint64_t first, std::uint64_t second,
                   std::uint64_t extra) noexcept {
    ThreadContext& thread = this_thread();
    if (thread.trace == nullptr) return;  // The thread is being made.
    RecordBuffer& buffer = thread.trace->recorded;
    if (buffer.leaves_out && !is_of_every_phase(kind)) {
        ++buffer.left_out;
        return;
    }
    const SyncPlace& place = thread.place;
    if (buffer.place.address != place.address || buffer.place.kind != place.kind) {
        buffer.place = place;
        append(buffer, thread, RecordKind::place, place.address,
               static_cast<std::uint64_t>(place.kind), 0);
    }
    append(buffer, thread, kind, first, second, extra);
}

void record_phase(std::uint64_t number) noexcept {
    if (!is_recording()) return;
    RecordBuffer* const buffer = record_buffer();
    std::byte* const mapped = file.load(std::memory_order_acquire);
    if (buffer == nullptr || mapped == nullptr) return;
    const RecordFileHead& head = head_of(mapped);
    const std::uint64_t stride = stride_at(
        std::atomic_ref{const_cast<std::uint64_t&>(head.chunks)}.load(std::memory_order_relaxed),
        head.chunks_max);
    const bool leaves_out = number % stride != 0;
    if (!leaves_out && buffer->leaves_out) {
        record_always(RecordKind::sample, stride, buffer->left_out, 0);
        buffer->left_out = 0;
    }
    buffer->leaves_out = leaves_out;
}

std::uint64_t thread_cpu_ns() noexcept {
    // Called here, and not in libc or the vdso: there the call would be examined (abi/libc/calls),
    // which takes ten times as long.
    timespec time{};
    long number = SYS_clock_gettime;
    asm volatile("syscall"
                 : "+a"(number)
                 : "D"(CLOCK_THREAD_CPUTIME_ID), "S"(&time)
                 : "rcx", "r11", "memory");
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace hiroba
