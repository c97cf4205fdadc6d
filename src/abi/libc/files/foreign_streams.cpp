// SPDX-License-Identifier: BSD-3-Clause
// How a stream's node is known: libc allocates a FILE in its own heap, and the heaps of the nodes
// lie one behind the other (malloc_place.hpp). The standard streams lie in libc, at one address
// everywhere: output goes to each node's own, which is the same file, until the program redirects
// it (standard_streams.hpp); input is node 0's. The headers' inline versions would stand in the way
// of these definitions.
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include "abi/libc/files/foreign_streams.hpp"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/object_turn.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/files/standard_streams.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

extern "C" {
int __fprintf_chk(FILE*, int, const char*, ...);
int __vfprintf_chk(FILE*, int, const char*, va_list);
char* __fgets_chk(char*, size_t, int, FILE*);
int __isoc99_fscanf(FILE*, const char*, ...);
int __isoc99_vfscanf(FILE*, const char*, va_list);
int __isoc99_scanf(const char*, ...);
int _IO_putc(int, FILE*);
int _IO_getc(FILE*);
}

HIROBA_REAL(vfprintf);
HIROBA_REAL(__vfprintf_chk);
HIROBA_REAL(fputs);
HIROBA_REAL(fputc);
HIROBA_REAL(fgets);
HIROBA_REAL(__fgets_chk);
HIROBA_REAL(fgetc);
HIROBA_REAL(ungetc);
HIROBA_REAL(fflush);
HIROBA_REAL(fclose);
HIROBA_REAL(pclose);
HIROBA_REAL(freopen);
HIROBA_REAL(freopen64);
HIROBA_REAL(fseek);
HIROBA_REAL(fseeko);
HIROBA_REAL(ftell);
HIROBA_REAL(ftello);
HIROBA_REAL(rewind);
HIROBA_REAL(clearerr);
HIROBA_REAL(__isoc99_vfscanf);

namespace hiroba::abi {
namespace {

struct StandIn {
    FILE* far = nullptr;
    FILE* local = nullptr;
    NodeId owner;
    bool in_memory = false;  ///< it has no file
};

constexpr std::size_t stand_ins_max = 256;
constinit StandIn stand_ins[stand_ins_max];
constinit Latch stand_ins_latch;

NodeId none() noexcept { return world()->job.self; }

NodeId owner_of_standard(int number) noexcept {
    return standard_owner(number).value_or(number == 0 ? NodeId{0} : none());
}

/// Rank of the node that opened the stream.
NodeId owner_of(FILE* stream) noexcept {
    if (const int number = standard_number(stream); number >= 0) return owner_of_standard(number);
    return foreign_private_heap(stream).value_or(none());
}

std::int64_t ask(const StandIn& stream, StreamCall call, long a = 0, long b = 0, Bytes in = {},
                 MutableBytes out = {}) noexcept {
    const CallArguments words{{dsm::kernel::as_word(stream.far), a, b}};
    // What this thread has done before is seen by the owner, and what that does by this thread.
    { const ObjectTurn before{stream.far, stream.in_memory}; }
    const std::int64_t result =
        world()->files->call(stream.owner, static_cast<std::int64_t>(call), words, -1, in, out);
    { const ObjectTurn after{stream.far, stream.in_memory}; }
    return result;
}

template <class T>
T failed(std::int64_t result) noexcept {
    errno = static_cast<int>(-result);
    return static_cast<T>(-1);
}

// The four functions of a cookie stream. A transfer is cut into messages.
ssize_t cookie_write(void* cookie, const char* from, size_t bytes) {
    const auto& stream = *static_cast<const StandIn*>(cookie);
    size_t done = 0;
    while (done < bytes) {
        const size_t piece = std::min(bytes - done, world()->files->chunk_bytes());
        const std::int64_t result =
            ask(stream, StreamCall::write, 0, 0, std::as_bytes(std::span(from + done, piece)));
        if (result < 0) return failed<ssize_t>(result) + 1;  // 0 is a cookie's failure to write
        done += static_cast<size_t>(result);
        if (static_cast<size_t>(result) < piece) break;
    }
    return static_cast<ssize_t>(done);
}

ssize_t cookie_read(void* cookie, char* to, size_t bytes) {
    const size_t piece = std::min(bytes, world()->files->chunk_bytes());
    const std::int64_t result = ask(*static_cast<const StandIn*>(cookie), StreamCall::read, 0, 0,
                                    {}, std::as_writable_bytes(std::span(to, piece)));
    return result < 0 ? failed<ssize_t>(result) : static_cast<ssize_t>(result);
}

int cookie_seek(void* cookie, off64_t* offset, int whence) {
    const auto& stream = *static_cast<const StandIn*>(cookie);
    const std::int64_t moved = ask(stream, StreamCall::seek, *offset, whence);
    if (moved < 0) return failed<int>(moved);
    const std::int64_t at = ask(stream, StreamCall::tell);
    if (at < 0) return failed<int>(at);
    *offset = at;
    return 0;
}

/// Under the latch. libc makes it in its own heap.
FILE* open_stand_in(StandIn& stand_in) noexcept {
    FILE* const local =
        fopencookie(&stand_in, "r+", {&cookie_read, &cookie_write, &cookie_seek, nullptr});
    if (local == nullptr) {
        die(exit_environment, "no memory for a stream of node %u", stand_in.owner.value);
    }
    setvbuf(local, nullptr, _IONBF, 0);
    return local;
}

StandIn& find_stand_in(FILE* far, NodeId owner) noexcept {
    const std::scoped_lock guard{stand_ins_latch};
    StandIn* free = nullptr;
    for (StandIn& each : stand_ins) {
        if (each.far == far && each.owner == owner) return each;
        if (each.far == nullptr && free == nullptr) free = &each;
    }
    if (free == nullptr) {
        die(exit_environment, "more than %lu streams of other nodes in use here: close some",
            stand_ins_max);
    }
    free->far = far;
    free->owner = owner;
    free->in_memory = false;
    if (free->local == nullptr) free->local = open_stand_in(*free);
    free->in_memory = ask(*free, StreamCall::number) == -EBADF;
    return *free;
}

/// is_far(); a standard stream of this node's is buffered as the program wants it from here on.
bool is_far_now(FILE* stream) noexcept {
    if (!spans_nodes() || stream == nullptr) return false;
    const int number = standard_number(stream);
    if (number < 0) return foreign_private_heap(stream).has_value();
    if (owner_of_standard(number) != none()) return true;
    follow_buffering(number);
    return false;
}

/// Whether the stream is at its end, or has failed, the owner knows, whoever has read or written.
StandIn& stand_in_of(FILE* stream) noexcept {
    StandIn& stand_in = find_stand_in(stream, owner_of(stream));
    real_clearerr(stand_in.local);
    return stand_in;
}

/// @return what the owner's call gave, or -1
int close_far(FILE* stream, StreamCall call) noexcept {
    StandIn& stand_in = stand_in_of(stream);
    const std::int64_t result = ask(stand_in, call);
    const std::scoped_lock guard{stand_ins_latch};
    stand_in.far = nullptr;  // its local stream serves the next
    return result < 0 ? failed<int>(result) : static_cast<int>(result);
}

int flush_far(FILE* stream) noexcept {
    const std::int64_t result = ask(stand_in_of(stream), StreamCall::flush);
    if (result < 0) errno = static_cast<int>(-result);
    return result < 0 ? EOF : 0;
}

/// The owner opens the file; a path is found in every node's working directory, which is the same.
FILE* reopen_far(const char* path, const char* mode, FILE* stream) noexcept {
    char texts[4096 + 64];
    const std::size_t mode_bytes = strlen(mode) + 1;
    const std::size_t path_bytes = path != nullptr ? strlen(path) + 1 : 0;
    if (mode_bytes + path_bytes > sizeof texts) {
        errno = ENAMETOOLONG;
        return nullptr;
    }
    memcpy(texts, mode, mode_bytes);
    if (path != nullptr) memcpy(texts + mode_bytes, path, path_bytes);
    const Bytes in = std::as_bytes(std::span(texts, mode_bytes + path_bytes));
    const std::int64_t result = ask(stand_in_of(stream), StreamCall::reopen, 0, 0, in);
    if (result == 0) return stream;
    errno = static_cast<int>(-result);
    return nullptr;
}

/// Notes what libc has done inside itself, where its calls are not examined.
void note_standard(FILE* stream) noexcept {
    if (spans_nodes()) standard_descriptor_changed(standard_number(stream), none());
}

/// Characters a stand-in has read and not handed out, or been given back.
std::size_t unread(const FILE& stream) noexcept {
    const auto ahead = static_cast<std::size_t>(stream._IO_read_end - stream._IO_read_ptr);
    constexpr int in_backup = 0x0100;  // _IO_IN_BACKUP of libio
    if ((stream._flags & in_backup) == 0) return ahead;
    return ahead + static_cast<std::size_t>(stream._IO_save_end - stream._IO_save_base);
}

/// near() for calls that may leave characters unread: at the end of the scope they are back with
/// the owner, because the next to read may be another node.
class NearReader {
public:
    explicit NearReader(FILE* stream) noexcept : stream_(stream) {
        if (!is_far(stream)) return;
        stand_in_ = &stand_in_of(stream);
        stream_ = stand_in_->local;
    }
    NearReader(const NearReader&) = delete;
    NearReader& operator=(const NearReader&) = delete;
    ~NearReader() {
        if (stand_in_ == nullptr) return;
        char characters[16];
        std::size_t count = std::min(unread(*stream_), sizeof characters);
        for (std::size_t i = 0; i < count; ++i) {
            characters[count - 1 - i] = static_cast<char>(real_fgetc(stream_));
        }
        if (count == 0) return;
        ask(*stand_in_, StreamCall::unread, 0, 0, std::as_bytes(std::span(characters, count)));
    }
    FILE* stream() const noexcept { return stream_; }

private:
    FILE* stream_;
    StandIn* stand_in_ = nullptr;
};

}  // namespace

bool is_far(FILE* stream) noexcept {
    return spans_nodes() && stream != nullptr && owner_of(stream) != none();
}

FILE* near(FILE* stream) noexcept {
    return is_far_now(stream) ? stand_in_of(stream).local : stream;
}

std::int64_t ask_owner(FILE* far, StreamCall call, long a, long b, Bytes in,
                       MutableBytes out) noexcept {
    return ask(stand_in_of(far), call, a, b, in, out);
}

int buffer_far(FILE* stream, int mode, std::size_t bytes) noexcept {
    const std::int64_t result =
        ask(stand_in_of(stream), StreamCall::buffer, mode, static_cast<long>(bytes));
    return result < 0 ? failed<int>(result) : 0;
}

namespace {

/// @param end  the character that ends it; none: only `total` bytes do
bool read_at_once(std::byte* to, std::size_t total, std::optional<int> end, FILE* stream,
                  std::size_t* got) noexcept {
    if (!is_far(stream)) return false;
    StandIn& stand_in = stand_in_of(stream);
    FILE& local = *stand_in.local;
    std::size_t done = 0;
    flockfile(&local);
    // A character left here comes first: libc's own way takes it.
    const bool direct = unread(local) == 0;
    while (direct && done < total) {
        const std::size_t piece = std::min(total - done, world()->files->chunk_bytes());
        const std::int64_t result =
            ask(stand_in, end ? StreamCall::read_line : StreamCall::read, static_cast<long>(piece),
                end.value_or(0), {}, {to + done, piece});
        if (result < 0) errno = static_cast<int>(-result);
        if (result <= 0) break;
        done += static_cast<std::size_t>(result);
        if (static_cast<std::size_t>(result) < piece) break;
        if (end && to[done - 1] == static_cast<std::byte>(*end)) break;
    }
    funlockfile(&local);
    *got = done;
    return direct;
}

}  // namespace

bool read_far(void* buffer, std::size_t size, std::size_t count, FILE* stream,
              std::size_t* got) noexcept {
    const bool is_read =
        read_at_once(static_cast<std::byte*>(buffer), size * count, std::nullopt, stream, got);
    if (is_read) *got = size == 0 ? 0 : *got / size;
    return is_read;
}

bool read_line_far(char* text, std::size_t most, int end, FILE* stream, std::size_t* got) noexcept {
    return read_at_once(reinterpret_cast<std::byte*>(text), most, end, stream, got);
}

ssize_t get_line_far(char** line, std::size_t* room, int end, FILE* stream) noexcept {
    if (line == nullptr || room == nullptr) return failed<ssize_t>(-EINVAL);
    const std::size_t most = world()->files->chunk_bytes();
    auto* const piece = static_cast<char*>(libc_malloc(most));
    if (piece == nullptr) return failed<ssize_t>(-ENOMEM);
    std::size_t length = 0;
    bool has_room = true;
    for (std::size_t got = most; got == most;) {
        read_line_far(piece, most, end, stream, &got);
        if (*line == nullptr || length + got >= *room) {
            const std::size_t wanted = std::max(2 * *room, length + got + 1);
            auto* const larger = static_cast<char*>(realloc(*line, wanted));
            has_room = larger != nullptr;
            if (!has_room) break;
            *line = larger;
            *room = wanted;
        }
        memcpy(*line + length, piece, got);
        length += got;
        if (got != 0 && piece[got - 1] == static_cast<char>(end)) break;
    }
    libc_free(piece);
    if (!has_room || length == 0) return -1;
    (*line)[length] = '\0';
    return static_cast<ssize_t>(length);
}

}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

int vfprintf(FILE* stream, const char* format, va_list list) {
    return real_vfprintf(Output(stream).near_stream(), format, list);
}
int fprintf(FILE* stream, const char* format, ...) {
    va_list list;
    va_start(list, format);
    const int printed = real_vfprintf(Output(stream).near_stream(), format, list);
    va_end(list);
    return printed;
}
int __vfprintf_chk(FILE* stream, int flag, const char* format, va_list list) {
    return real___vfprintf_chk(Output(stream).near_stream(), flag, format, list);
}
int __fprintf_chk(FILE* stream, int flag, const char* format, ...) {
    va_list list;
    va_start(list, format);
    const int printed = real___vfprintf_chk(Output(stream).near_stream(), flag, format, list);
    va_end(list);
    return printed;
}
int fputs(const char* text, FILE* stream) { return real_fputs(text, Output(stream).near_stream()); }
int fputc(int c, FILE* stream) { return real_fputc(c, Output(stream).near_stream()); }
int putc(int c, FILE* stream) { return real_fputc(c, Output(stream).near_stream()); }
int _IO_putc(int c, FILE* stream) { return real_fputc(c, Output(stream).near_stream()); }

char* fgets(char* text, int bytes, FILE* stream) {
    size_t got = 0;
    if (bytes <= 1 || !read_line_far(text, static_cast<size_t>(bytes) - 1, '\n', stream, &got))
        return real_fgets(text, bytes, near(stream));
    if (got == 0) return nullptr;
    text[got] = '\0';
    return text;
}
char* __fgets_chk(char* text, size_t room, int bytes, FILE* stream) {
    const bool fits =
        bytes > 0 && static_cast<size_t>(bytes) <= room;  // else libc ends the process
    return fits ? fgets(text, bytes, stream) : real___fgets_chk(text, room, bytes, near(stream));
}
int fgetc(FILE* stream) { return real_fgetc(near(stream)); }
int getc(FILE* stream) { return real_fgetc(near(stream)); }
int _IO_getc(FILE* stream) { return real_fgetc(near(stream)); }
int getchar() { return real_fgetc(near(stdin)); }
int ungetc(int c, FILE* stream) { return real_ungetc(c, NearReader(stream).stream()); }

int __isoc99_vfscanf(FILE* stream, const char* format, va_list list) {
    return real___isoc99_vfscanf(NearReader(stream).stream(), format, list);
}
int __isoc99_fscanf(FILE* stream, const char* format, ...) {
    va_list list;
    va_start(list, format);
    const int count = real___isoc99_vfscanf(NearReader(stream).stream(), format, list);
    va_end(list);
    return count;
}
int __isoc99_scanf(const char* format, ...) {
    va_list list;
    va_start(list, format);
    const int count = real___isoc99_vfscanf(NearReader(stdin).stream(), format, list);
    va_end(list);
    return count;
}

int fflush(FILE* stream) {
    if (is_far(stream)) return flush_far(stream);
    if (!spans_nodes()) return real_fflush(stream);
    if (stream == nullptr) flush_standard_output();
    return stream == standard_output() ? flush_standard_output() : real_fflush(stream);
}
int fclose(FILE* stream) {
    if (is_far(stream)) return close_far(stream, StreamCall::close);
    note_standard(stream);
    return real_fclose(stream);
}
int pclose(FILE* stream) {
    return is_far(stream) ? close_far(stream, StreamCall::close_child) : real_pclose(stream);
}
FILE* freopen(const char* path, const char* mode, FILE* stream) {
    if (is_far(stream)) return reopen_far(path, mode, stream);
    let_kernel_read_text(path);
    FILE* const opened = real_freopen(path, mode, stream);
    note_standard(stream);
    return opened;
}
FILE* freopen64(const char* path, const char* mode, FILE* stream) {
    if (is_far(stream)) return reopen_far(path, mode, stream);
    let_kernel_read_text(path);
    FILE* const opened = real_freopen64(path, mode, stream);
    note_standard(stream);
    return opened;
}
int fseek(FILE* stream, long offset, int whence) {
    return real_fseek(near(stream), offset, whence);
}
int fseeko(FILE* stream, off_t offset, int whence) {
    return real_fseeko(near(stream), offset, whence);
}
int fseeko64(FILE* stream, off64_t offset, int whence) {
    return real_fseeko(near(stream), offset, whence);
}
long ftell(FILE* stream) { return real_ftell(near(stream)); }
off_t ftello(FILE* stream) { return real_ftello(near(stream)); }
off64_t ftello64(FILE* stream) { return real_ftello(near(stream)); }
void rewind(FILE* stream) { real_rewind(near(stream)); }

}  // extern "C"
