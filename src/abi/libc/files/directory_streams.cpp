// SPDX-License-Identifier: BSD-3-Clause
// Role: opendir() and its kin for the program. libc has the stream in its own heap; the program's
// lies in global memory and reads entries by system calls, which find the node of the descriptor.
// Invariant: an entry stays where it is until the stream reads the next ones, as in libc. One
// thread at a time works on a stream, and sees what those before it have read.
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"
#include "abi/libc/sync/sync_objects.hpp"

using Entry = struct dirent64;

// Their names are out of date, not their use.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
HIROBA_REAL(opendir);
HIROBA_REAL(fdopendir);
HIROBA_REAL(closedir);
HIROBA_REAL(dirfd);
HIROBA_REAL(readdir64);
HIROBA_REAL(readdir64_r);
HIROBA_REAL(rewinddir);
HIROBA_REAL(seekdir);
HIROBA_REAL(telldir);

namespace hiroba::abi {
namespace {

/// In global memory.
struct Directory {
    int descriptor;
    std::size_t read = 0, next = 0;  ///< bytes of `entries`
    long position = 0;               ///< behind the entry handed out last
    alignas(Entry) char entries[32 << 10];
};

Directory* of_program(DIR* stream) noexcept {
    return spans_nodes() && is_program_memory(stream) ? reinterpret_cast<Directory*>(stream)
                                                      : nullptr;
}

bool serves_program(const void* return_address) noexcept {
    return spans_nodes() && is_for_program(return_address);
}

template <class... Arguments>
long call(long number, Arguments... arguments) noexcept {
    const long result =
        perform_system_call(number, CallArguments{{dsm::kernel::as_word(arguments)...}});
    if (!dsm::kernel_failed(result)) return result;
    errno = static_cast<int>(-result);
    return -1;
}

/// This thread alone works on the stream.
class Turn {
public:
    explicit Turn(const Directory* stream) noexcept : key_(key_of(stream)) {
        world()->sync->lock_mutex(key_, dsm::MutexType::normal, {});
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { world()->sync->unlock_mutex(key_, dsm::MutexType::normal); }

private:
    dsm::SyncKey key_;
};

DIR* make_stream(int descriptor) noexcept {
    void* const room = allocate_for_program(sizeof(Directory), alignof(Directory), false);
    if (room == nullptr) return nullptr;
    auto* const stream = new (room) Directory;
    stream->descriptor = descriptor;
    return reinterpret_cast<DIR*>(stream);
}

DIR* open_stream(const char* path) noexcept {
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
    const long descriptor = call(SYS_openat, AT_FDCWD, path, flags, 0);
    if (descriptor < 0) return nullptr;
    DIR* const stream = make_stream(static_cast<int>(descriptor));
    if (stream == nullptr) {
        call(SYS_close, descriptor);
        errno = ENOMEM;
    }
    return stream;
}

DIR* open_stream(int descriptor) noexcept {
    struct stat status;
    if (call(SYS_fstat, descriptor, &status) < 0) return nullptr;
    const long flags = call(SYS_fcntl, descriptor, F_GETFL);
    if (flags < 0) return nullptr;
    if (!S_ISDIR(status.st_mode)) {
        errno = ENOTDIR;
        return nullptr;
    }
    if ((flags & O_ACCMODE) == O_WRONLY) {
        errno = EINVAL;
        return nullptr;
    }
    return make_stream(descriptor);
}

/// nullptr: the end, or an error and errno.
Entry* read_entry(Directory& stream) noexcept {
    if (stream.next >= stream.read) {
        const int errno_before = errno;
        const long read =
            call(SYS_getdents64, stream.descriptor, stream.entries, sizeof stream.entries);
        if (read < 0 && errno == ENOENT) errno = errno_before;  // the directory is gone: the end
        if (read <= 0) return nullptr;
        stream.read = static_cast<std::size_t>(read);
        stream.next = 0;
    }
    auto* const entry = reinterpret_cast<Entry*>(stream.entries + stream.next);
    stream.next += entry->d_reclen;
    stream.position = entry->d_off;
    return entry;
}

void move_to(Directory& stream, long position) noexcept {
    const Turn turn{&stream};
    call(SYS_lseek, stream.descriptor, position, SEEK_SET);
    stream.read = stream.next = 0;
    stream.position = position;
}

int close_stream(Directory* stream) noexcept {
    int descriptor;
    {
        const Turn turn{stream};
        descriptor = stream->descriptor;
    }
    give_back(stream);
    return static_cast<int>(call(SYS_close, descriptor));
}

Entry* read_next(DIR* stream) noexcept {
    Directory* const own = of_program(stream);
    if (own == nullptr) return real_readdir64(stream);
    const Turn turn{own};
    return read_entry(*own);
}

int read_into(DIR* stream, Entry* room, Entry** result) noexcept {
    Directory* const own = of_program(stream);
    if (own == nullptr) return real_readdir64_r(stream, room, result);
    const Turn turn{own};
    const int errno_before = errno;
    errno = 0;
    const Entry* const entry = read_entry(*own);
    const int error = errno;
    errno = errno_before;
    *result = nullptr;
    if (entry == nullptr) return error;
    const std::size_t bytes = offsetof(Entry, d_name) + strlen(entry->d_name) + 1;
    if (bytes > sizeof(Entry)) return ENAMETOOLONG;
    *result = static_cast<Entry*>(memcpy(room, entry, bytes));
    room->d_reclen = static_cast<unsigned short>(sizeof(Entry));
    return 0;
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#pragma GCC visibility push(default)
extern "C" {

DIR* opendir(const char* path) {
    return serves_program(HIROBA_CALLER) ? open_stream(path) : real_opendir(path);
}
DIR* fdopendir(int descriptor) {
    return serves_program(HIROBA_CALLER) ? open_stream(descriptor) : real_fdopendir(descriptor);
}
int closedir(DIR* stream) {
    Directory* const own = of_program(stream);
    return own != nullptr ? close_stream(own) : real_closedir(stream);
}
int dirfd(DIR* stream) noexcept {
    const Directory* const own = of_program(stream);
    return own != nullptr ? own->descriptor : real_dirfd(stream);
}
struct dirent64* readdir64(DIR* stream) {
    return read_next(stream);
}
int readdir64_r(DIR* stream, struct dirent64* room, struct dirent64** result) {
    return read_into(stream, room, result);
}
// On this machine's ABI both names mean one structure.
struct dirent* readdir(DIR* stream) {
    static_assert(sizeof(struct dirent64) == sizeof(struct dirent));
    return reinterpret_cast<struct dirent*>(read_next(stream));
}
int readdir_r(DIR* stream, struct dirent* room, struct dirent** result) {
    return read_into(stream, reinterpret_cast<struct dirent64*>(room),
                     reinterpret_cast<struct dirent64**>(result));
}
void rewinddir(DIR* stream) noexcept {
    Directory* const own = of_program(stream);
    own != nullptr ? move_to(*own, 0) : real_rewinddir(stream);
}
void seekdir(DIR* stream, long position) noexcept {
    Directory* const own = of_program(stream);
    own != nullptr ? move_to(*own, position) : real_seekdir(stream, position);
}
long telldir(DIR* stream) noexcept {
    const Directory* const own = of_program(stream);
    return own != nullptr ? own->position : real_telldir(stream);
}

}  // extern "C"
