// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/file_service.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <wchar.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/foreign_streams.hpp"
#include "abi/libc/files/fortran_units.hpp"
#include "abi/libc/files/object_turn.hpp"
#include "abi/libc/files/record_locks.hpp"
#include "abi/libc/memory/malloc_figures.hpp"
#include "abi/libc/process/child_signals.hpp"
#include "abi/libc/process/exit_handlers.hpp"
#include "abi/libc/process/signal_waits.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/threads/thread_joins.hpp"
#include "abi/libc/threads/thread_names.hpp"
#include "abi/messages.hpp"
#include "base/fatal.hpp"
#include "base/own_descriptors.hpp"
#include "base/service_thread.hpp"

namespace hiroba::abi {
namespace {

FILE* stream_of(const CallArguments& words) noexcept {
    return reinterpret_cast<FILE*>(static_cast<std::uintptr_t>(words.word[0]));
}

/// -1 and errno as one number.
std::int64_t outcome(std::int64_t result) noexcept { return result < 0 ? -errno : result; }

/// `texts`: the mode and, unless the stream keeps its file, the path, each with its zero.
std::int64_t reopen(FILE* stream, const char* texts, std::size_t bytes) noexcept {
    const char* const mode = texts;
    const char* const path = std::strlen(mode) + 1 < bytes ? mode + std::strlen(mode) + 1 : nullptr;
    return freopen(path, mode, stream) != nullptr ? 0 : -errno;
}

std::int64_t path_of(long descriptor, std::byte* data, std::size_t bytes) noexcept {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%ld", descriptor);
    return dsm::kernel_call(SYS_readlink, link, data, bytes);
}

bool makes_descriptor(std::int64_t number, const CallArguments& words) noexcept {
    const SystemCall* const row = find_system_call(number);
    return (row != nullptr && row->opens) ||
           (number == SYS_fcntl && (words.word[1] == F_DUPFD || words.word[1] == F_DUPFD_CLOEXEC));
}

std::int64_t write_wide(FILE* stream, const std::byte* data, std::size_t bytes) noexcept {
    std::int64_t result = 0;
    flockfile(stream);
    for (std::size_t at = 0; at + sizeof(wchar_t) <= bytes && result == 0; at += sizeof(wchar_t)) {
        wchar_t character;
        std::memcpy(&character, data + at, sizeof character);
        if (fputwc(character, stream) == WEOF) result = errno != 0 ? -errno : -EIO;
    }
    funlockfile(stream);
    return result;
}

std::int64_t read_wide(FILE* stream, std::byte* data, std::int64_t most) noexcept {
    std::int64_t count = 0;
    flockfile(stream);
    while (count < most) {
        const wint_t got = fgetwc(stream);
        if (got == WEOF) break;
        const auto character = static_cast<wchar_t>(got);
        std::memcpy(data + static_cast<std::size_t>(count++) * sizeof character, &character,
                    sizeof character);
        if (character == L'\n') break;
    }
    const bool has_failed = count == 0 && ferror(stream) != 0;
    funlockfile(stream);
    return has_failed ? (errno != 0 ? -errno : -EIO) : count;
}

/// As fgets(): no other thread reads a part of the line.
std::int64_t read_line(FILE* stream, std::byte* data, std::int64_t most, int end) noexcept {
    std::int64_t count = 0;
    flockfile(stream);
    while (count < most) {
        const int got = getc_unlocked(stream);
        if (got == EOF) break;
        data[count++] = static_cast<std::byte>(got);
        if (got == end) break;
    }
    const bool has_failed = count == 0 && ferror(stream) != 0;
    funlockfile(stream);
    return has_failed ? (errno != 0 ? -errno : -EIO) : count;
}

/// libc's own functions, as in call_stream().
std::int64_t look_at(FILE* stream, const CallArguments& words) noexcept {
    const auto is = [](int result) { return static_cast<std::int64_t>(result != 0); };
    switch (static_cast<StreamQuestion>(words.word[1])) {
        case StreamQuestion::at_end: return is(feof(stream));
        case StreamQuestion::has_failed: return is(ferror(stream));
        case StreamQuestion::clear_errors: clearerr(stream); return 0;
        case StreamQuestion::pending_bytes: return static_cast<std::int64_t>(__fpending(stream));
        case StreamQuestion::reads: return is(__freading(stream));
        case StreamQuestion::writes: return is(__fwriting(stream));
        case StreamQuestion::is_readable: return is(__freadable(stream));
        case StreamQuestion::is_writable: return is(__fwritable(stream));
        case StreamQuestion::is_line_buffered: return is(__flbf(stream));
        case StreamQuestion::buffer_bytes: return static_cast<std::int64_t>(__fbufsize(stream));
        case StreamQuestion::purge: __fpurge(stream); return 0;
        case StreamQuestion::set_locking:
            return __fsetlocking(stream, static_cast<int>(words.word[2]));
    }
    return -ENOSYS;
}

std::int64_t get_position(FILE* stream, std::byte* data) noexcept {
    fpos_t position;
    if (fgetpos(stream, &position) != 0) return -errno;
    std::memcpy(data, &position, sizeof position);
    return 0;
}

std::int64_t set_position(FILE* stream, const std::byte* data) noexcept {
    fpos_t position;
    std::memcpy(&position, data, sizeof position);
    return outcome(fsetpos(stream, &position));
}

/// How much of the data a call has filled that gave `result`. The rest stays as the caller has it.
std::size_t filled_bytes(const FileRequest& request, std::int64_t result) noexcept {
    if (result < 0) return 0;
    const auto count = static_cast<std::size_t>(result);
    const std::size_t all = request.out_bytes;
    switch (request.number) {
        case SYS_read:
        case SYS_pread64:
        case SYS_getdents:
        case SYS_getdents64:
        case static_cast<std::int64_t>(StreamCall::read):
        case static_cast<std::int64_t>(StreamCall::read_line):
        case static_cast<std::int64_t>(StreamCall::path): return std::min(all, count);
        case static_cast<std::int64_t>(StreamCall::read_wide):
            return std::min(all, count * sizeof(wchar_t));
        default: return all;
    }
}

/// On the stream's own node. libc's own functions: our library's calls are not interposed.
std::int64_t call_stream(StreamCall call, const CallArguments& words, std::byte* data,
                         std::size_t in_bytes, std::size_t out_bytes) noexcept {
    if (call == StreamCall::path) return path_of(words.word[0], data, out_bytes);
    FILE* const stream = stream_of(words);
    const ObjectTurn turn{stream, call != StreamCall::number && fileno(stream) < 0};
    errno = 0;
    switch (call) {
        case StreamCall::write: {
            const std::size_t written = fwrite(data, 1, in_bytes, stream);
            return written == 0 && errno != 0 ? -errno : static_cast<std::int64_t>(written);
        }
        case StreamCall::read: {
            const std::size_t got = fread(data, 1, out_bytes, stream);
            return got == 0 && ferror(stream) != 0 && errno != 0 ? -errno
                                                                 : static_cast<std::int64_t>(got);
        }
        case StreamCall::read_line:
            return read_line(stream, data, words.word[1], static_cast<int>(words.word[2]));
        case StreamCall::unread:
            for (std::size_t i = 0; i < in_bytes; ++i) {
                const int c = static_cast<unsigned char>(data[i]);
                if (ungetc(c, stream) == EOF) return -EIO;
            }
            return 0;
        case StreamCall::seek:
            return outcome(fseeko(stream, words.word[1], static_cast<int>(words.word[2])));
        case StreamCall::tell: return outcome(ftello(stream));
        case StreamCall::flush: return outcome(fflush(stream));
        case StreamCall::close: return outcome(fclose(stream));
        case StreamCall::close_child: return outcome(pclose(stream));
        case StreamCall::get_position: return get_position(stream, data);
        case StreamCall::set_position: return set_position(stream, data);
        case StreamCall::look: return look_at(stream, words);
        case StreamCall::number: return outcome(fileno(stream));
        case StreamCall::buffer:
            return outcome(setvbuf(stream, nullptr, static_cast<int>(words.word[1]),
                                   static_cast<std::size_t>(words.word[2])));
        case StreamCall::reopen: return reopen(stream, reinterpret_cast<char*>(data), in_bytes);
        case StreamCall::write_wide: return write_wide(stream, data, in_bytes);
        case StreamCall::read_wide: return read_wide(stream, data, words.word[1]);
        case StreamCall::unread_wide:
            return ungetwc(static_cast<wint_t>(words.word[1]), stream) == WEOF ? -EIO : 0;
        case StreamCall::orient: return fwide(stream, static_cast<int>(words.word[1])) + 1;
        case StreamCall::path: break;  // of a descriptor: above
    }
    return -ENOSYS;
}

}  // namespace

FileService::FileService(net::Endpoint& endpoint, std::size_t chunk_bytes)
    : endpoint_(endpoint),
      chunk_bytes_(chunk_bytes),
      slots_(std::size_t{endpoint.nodes()} * file_lanes) {
    endpoint.on(message::file_request, &on_request, this);
}

int FileService::start_thread() noexcept {
    pthread_t thread;
    const ServiceThreadStart blocked;
    return pthread_create(&thread, nullptr, &serve, this);
}

Result<void> FileService::start() {
    free_threads_ = 1;
    const int failure = start_thread();
    if (failure == 0) return {};
    return Error{ErrorKind::environment,
                 std::string("the thread that serves files did not start: ") +
                     std::strerror(failure) + ". " + thread_advice(failure)};
}

// In a handler of messages, where nothing may be allocated: libc's heap may be locked by the thread
// that polls.
FileService::Slot& FileService::slot_of(NodeId from, std::uint32_t lane) noexcept {
    Slot*& slot = slots_[std::size_t{from.value} * file_lanes + lane];
    if (slot != nullptr) return *slot;
    const std::size_t bytes = sizeof(Slot) + chunk_bytes_;
    const long at = dsm::kernel_call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (dsm::kernel_failed(at)) {
        die(exit_environment,
            "no memory for %lu bytes of a file request of node %u: %s. Raise ulimit -v", bytes,
            from.value, strerror(static_cast<int>(-at)));
    }
    slot = reinterpret_cast<Slot*>(at);
    return *slot;
}

void FileService::on_request(void* self, NodeId from, Bytes body) noexcept {
    auto& service = *static_cast<FileService*>(self);
    FileRequest request;
    HIROBA_INVARIANT(
        body.size() >= sizeof request && body.size() <= sizeof request + service.chunk_bytes_,
        "file request of %lu bytes from node %u", body.size(), from.value);
    std::memcpy(&request, body.data(), sizeof request);
    HIROBA_INVARIANT(request.lane < file_lanes, "file request of node %u in lane %u", from.value,
                     request.lane);
    if (request.number == end_of_call) return service.end_call(from, request.lane);
    Slot& slot = service.slot_of(from, request.lane);
    slot.is_ended.store(false);
    slot.request = request;
    slot.from = from;
    std::memcpy(slot.data(), body.data() + sizeof request, body.size() - sizeof request);
    service.put(slot);
    service.arrived_.ring();
}

long FileService::call_kernel(const Slot& slot, long number, const CallArguments& words) noexcept {
    const long* const w = words.word;
    long result = 0;
    do {  // again, if it was ended for a request that this thread has served before
        result = dsm::kernel_call(number, w[0], w[1], w[2], w[3], w[4], w[5]);
    } while (result == -EINTR && !slot.is_ended.load());
    return result;
}

std::int64_t FileService::lock_records(Slot& slot, CallArguments& words) noexcept {
    const std::int64_t failure = prepare_lock_here(words, slot.data());
    return failure != 0 ? failure : call_kernel(slot, SYS_fcntl, words);
}

/// The slot's data are the reply's, when it returns.
std::int64_t FileService::carry_out(Slot& slot) noexcept {
    const FileRequest& request = slot.request;
    std::byte* const data = slot.data();
    CallArguments words;
    for (int i = 0; i < 6; ++i) words.word[i] = request.words[i];
    if (request.number == static_cast<std::int64_t>(SignalCall::wait))
        return wait_for_signal_here(words, data);
    if (request.number == static_cast<std::int64_t>(ThreadCall::send_signal))
        return send_signal_here(words, data);
    if (request.number == static_cast<std::int64_t>(ChildCall::tell))
        return tell_of_child_here(data);
    if (request.number == static_cast<std::int64_t>(NameCall::name))
        return name_thread_here(words, data);
    if (request.number == static_cast<std::int64_t>(JoinCall::join))
        return join_thread_here(words, data);
    if (request.number == static_cast<std::int64_t>(JoinCall::detach))
        return detach_thread_here(words);
    if (request.number == static_cast<std::int64_t>(HeapCall::bytes_used)) return bytes_used_here();
    if (request.number == static_cast<std::int64_t>(UnitCall::call))
        return call_unit_here(words, data);
    if (request.number == static_cast<std::int64_t>(LockCall::note)) return note_locks_here(words);
    if (request.number == static_cast<std::int64_t>(LockCall::drop)) return drop_locks_here(words);
    if (request.number == static_cast<std::int64_t>(LockCall::request))
        return lock_records(slot, words);
    if (request.number >= static_cast<std::int64_t>(HandlerCall::at_exit))
        return register_handler(static_cast<HandlerCall>(request.number), words);
    if (request.number >= static_cast<std::int64_t>(StreamCall::write))
        return call_stream(static_cast<StreamCall>(request.number), words, data, request.in_bytes,
                           request.out_bytes);
    const bool on_descriptor = request.number != SYS_wait4 && request.number != SYS_waitid;
    if (on_descriptor && is_kept_descriptor(static_cast<int>(words.word[0]))) return -EBADF;
    const bool replaces = request.number == SYS_dup2 || request.number == SYS_dup3;
    if (replaces && is_kept_descriptor(static_cast<int>(words.word[1]))) return -EBADF;
    for (unsigned i = 0; i < 6; ++i)
        if ((request.places >> i & 1) != 0) words.word[i] += dsm::kernel::as_word(data);
    const std::optional<ClosingFile> closing =
        request.number == SYS_close ? std::optional<ClosingFile>{std::in_place, words.word[0]}
                                    : std::nullopt;
    const long result = call_kernel(slot, request.number, words);
    return makes_descriptor(request.number, words) ? number_new_descriptor(result) : result;
}

/// Behind its answer there is nothing to end: the thread may serve another already.
void FileService::end_call(NodeId from, std::uint32_t lane) noexcept {
    Slot& slot = slot_of(from, lane);
    slot.is_ended.store(true);
    const std::scoped_lock guard{latch_};
    if (slot.server != 0) end_call_of_service(slot.server);
}

void FileService::put(Slot& slot) noexcept {
    const std::scoped_lock guard{latch_};
    slot.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &slot;
    last_ = &slot;
}

FileService::Slot* FileService::take() noexcept {
    const std::scoped_lock guard{latch_};
    Slot* const slot = first_;
    if (slot == nullptr) return nullptr;
    first_ = slot->next;
    --free_threads_;
    slot->server = static_cast<pid_t>(dsm::kernel_call(SYS_gettid));
    return slot;
}

// Called before a request is carried out, which may wait for what the next one does.
void FileService::keep_one_free() noexcept {
    {
        const std::scoped_lock guard{latch_};
        if (free_threads_ > 0) return;
        ++free_threads_;
    }
    const int failure = start_thread();
    if (failure == 0) return;
    ServiceThreadStart::fail("serves files beside one that waits", failure);
}

void* FileService::serve(void* self) noexcept {
    auto& service = *static_cast<FileService*>(self);
    for (;;) {
        const std::uint32_t seen = service.arrived_.rings();
        Slot* const slot = service.take();
        if (slot == nullptr) {
            service.arrived_.sleep_past(seen);
            continue;
        }
        service.keep_one_free();
        service.answer(*slot);
        const std::scoped_lock guard{service.latch_};
        ++service.free_threads_;
    }
}

void FileService::answer(Slot& slot) noexcept {
    const FileRequest& request = slot.request;
    const FileReply reply{carry_out(slot), request.lane};
    {
        const std::scoped_lock guard{latch_};
        slot.server = 0;
    }
    const Bytes parts[] = {std::as_bytes(std::span(&reply, 1)),
                           {slot.data(), filled_bytes(request, reply.result)}};
    // Behind the reply the slot is the next request's: a message is copied when it is sent.
    endpoint_.send(slot.from, message::file_reply, net::Urgency::wake_service, parts);
}

}  // namespace hiroba::abi
