// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/record_locks.hpp"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <span>
#include <vector>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/memory/shared_files.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "base/own_descriptors.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;
using dsm::kernel::as_word;

constexpr NodeId node_0{0};

/// What goes to node 0: the lock, from the beginning of the file, and where the file is.
struct LockRequest {
    struct flock lock;
    dev_t device;  ///< 0: another host's number
    ino_t file;
    long access;  ///< O_RDONLY, O_WRONLY or O_RDWR, of the program's descriptor
    char path[768];
};

/// A file on which the program has, or had, locks.
struct LockedFile {
    dev_t device;
    ino_t file;
    int fd;  ///< on node 0, if it has one of its own; else -1

    bool is(dev_t of_device, ino_t number) const noexcept {
        return file == number && (of_device == 0 || device == of_device);
    }
};

constinit Latch files_latch;
constinit std::atomic<bool> has_files{false};
/// Never destroyed: the program's own destructors close.
std::vector<LockedFile>& files() noexcept {
    static auto* const made = new std::vector<LockedFile>;
    return *made;
}

/// With the latch.
LockedFile* find_file(dev_t device, ino_t file) noexcept {
    const auto found = std::ranges::find_if(
        files(), [&](const LockedFile& each) { return each.is(device, file); });
    return found != files().end() ? &*found : nullptr;
}

/// Notes a file of which all descriptors are the program's.
void note_file(dev_t device, ino_t file) noexcept {
    const std::scoped_lock guard{files_latch};
    if (find_file(device, file) == nullptr) files().push_back({device, file, -1});
    has_files.store(true);
}

bool is_record_lock(long number, const CallArguments& arguments) noexcept {
    const long command = arguments.word[1];
    return number == SYS_fcntl && arguments.word[2] != 0 &&
           (command == F_SETLK || command == F_SETLKW || command == F_GETLK);
}

/// A call on a descriptor, wherever it is.
long call(long number, long fd, long second = 0, long third = 0) noexcept {
    return perform_system_call(number, CallArguments{{fd, second, third}});
}

/// Where the lock begins, from the beginning of the file.
long make_absolute(struct flock& lock, long fd, off_t file_bytes) noexcept {
    long from = 0;
    if (lock.l_whence == SEEK_CUR) from = call(SYS_lseek, fd, 0, SEEK_CUR);
    if (lock.l_whence == SEEK_END) from = file_bytes;
    if (from < 0) return from;
    if (lock.l_whence != SEEK_CUR && lock.l_whence != SEEK_END) return 0;
    lock.l_start += from;
    lock.l_whence = SEEK_SET;
    return lock.l_start < 0 ? -EINVAL : 0;
}

bool forbids(long access, short type) noexcept {
    return (type == F_RDLCK && access == O_WRONLY) || (type == F_WRLCK && access == O_RDONLY);
}

/// Where node 0 finds the file: as the owner's process has it, or, on another host, by its name.
long find_path(NodeId owner, long fd, LockRequest& request) noexcept {
    if (const auto process = process_of(owner)) {
        snprintf(request.path, sizeof request.path, "/proc/%ld/fd/%ld", static_cast<long>(*process),
                 fd);
        return 0;
    }
    request.device = 0;
    const MutableBytes room{reinterpret_cast<std::byte*>(request.path), sizeof request.path - 1};
    long bytes = 0;
    if (owner == world()->job.self) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
        bytes = kernel_call(SYS_readlink, link, room.data(), room.size());
    } else {
        bytes = world()->files->call(owner, static_cast<long>(StreamCall::path),
                                     CallArguments{{fd}}, -1, {}, room);
    }
    if (bytes < 0) return bytes;
    request.path[bytes] = '\0';
    return 0;
}

/// On node 0.
long make_here(CallArguments words, LockRequest& request) noexcept {
    const long failure = prepare_lock_here(words, reinterpret_cast<std::byte*>(&request));
    if (failure != 0) return failure;
    return kernel_call(SYS_fcntl, words.word[0], words.word[1], words.word[2]);
}

long send_request(long command, LockRequest& request) noexcept {
    CallArguments words{{0, command, 0}};
    if (world()->job.self == node_0) return make_here(words, request);
    return world()->files->call_packed(node_0, static_cast<long>(LockCall::request), words, 1u << 2,
                                       std::as_writable_bytes(std::span{&request, 1}));
}

/// The owner tells node 0 when it closes the descriptor.
void note_at_owner(NodeId owner, const struct stat& status) noexcept {
    if (owner == world()->job.self) return note_file(status.st_dev, status.st_ino);
    const CallArguments words{{static_cast<long>(status.st_dev), static_cast<long>(status.st_ino)}};
    world()->files->call(owner, static_cast<long>(LockCall::note), words, -1, {}, {});
}

long lock_on_node_0(NodeId owner, const CallArguments& arguments) noexcept {
    const long fd = arguments.word[0], command = arguments.word[1];
    auto* const given = pointer<struct flock>(arguments.word[2]);
    struct stat status;
    if (const long failed = call(SYS_fstat, fd, as_word(&status)); failed < 0) return failed;
    LockRequest request{};
    request.lock = *given;
    request.device = status.st_dev;
    request.file = status.st_ino;
    request.access = call(SYS_fcntl, fd, F_GETFL);
    if (request.access < 0) return request.access;
    request.access &= O_ACCMODE;
    if (command != F_GETLK && forbids(request.access, request.lock.l_type)) return -EBADF;
    if (const long failed = make_absolute(request.lock, fd, status.st_size)) return failed;
    if (const long failed = find_path(owner, fd, request)) return failed;
    note_at_owner(owner, status);
    const long result = send_request(command, request);
    if (result == 0 && command == F_GETLK) *given = request.lock;
    return result;
}

/// A descriptor of node 0's own for the file; negated error number.
int open_here(const LockRequest& request) noexcept {
    struct stat status;
    const long found = kernel_call(SYS_stat, request.path, &status);
    if (found < 0 || status.st_ino != request.file ||
        (request.device != 0 && status.st_dev != request.device)) {
        say("record lock refused: node 0, which has those of all nodes, does not find the file %s; "
            "lock it by flock() or F_OFD_SETLK, or run on one node (-n 1)",
            request.path);
        return -ENOLCK;
    }
    const std::scoped_lock in_motion{descriptors_in_motion};
    long fd = kernel_call(SYS_openat, AT_FDCWD, request.path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) fd = kernel_call(SYS_openat, AT_FDCWD, request.path, request.access | O_CLOEXEC, 0);
    return fd < 0 ? static_cast<int>(fd) : keep_descriptor(static_cast<int>(fd));
}

/// What is open to be read alone cannot have a lock for writing: the file is opened again.
bool serves(const LockedFile& file, const LockRequest& request) noexcept {
    if (file.fd < 0) return false;
    const long access = kernel_call(SYS_fcntl, file.fd, F_GETFL) & O_ACCMODE;
    return !forbids(access, request.lock.l_type);
}

}  // namespace

std::optional<long> lock_for_job(long number, const CallArguments& arguments) noexcept {
    if (!is_record_lock(number, arguments) || !is_node_process()) return std::nullopt;
    const auto fd = static_cast<int>(arguments.word[0]);
    const NodeId self = world()->job.self, owner = foreign_owner(fd).value_or(self);
    if (owner != node_0) return lock_on_node_0(owner, arguments);
    struct stat status;
    // Node 0 does as ever, but closes nothing of this file on its own account.
    if (self == node_0 && kernel_call(SYS_fstat, fd, &status) == 0)
        note_file(status.st_dev, status.st_ino);
    return std::nullopt;
}

std::int64_t note_locks_here(const CallArguments& words) noexcept {
    note_file(static_cast<dev_t>(words.word[0]), static_cast<ino_t>(words.word[1]));
    return 0;
}

std::int64_t drop_locks_here(const CallArguments& words) noexcept {
    const auto device = static_cast<dev_t>(words.word[0]);
    const auto number = static_cast<ino_t>(words.word[1]);
    const std::scoped_lock guard{files_latch};
    std::erase_if(files(), [&](const LockedFile& each) {
        const bool closes = each.fd >= 0 && each.is(device, number);
        if (closes) kernel_call(SYS_close, each.fd);
        return closes;
    });
    return 0;
}

std::int64_t prepare_lock_here(CallArguments& words, std::byte* data) noexcept {
    LockRequest request;
    memcpy(&request, data, sizeof request);
    const std::scoped_lock guard{files_latch};
    LockedFile* file = nullptr;
    for (LockedFile& each : files())
        if (each.is(request.device, request.file) && serves(each, request)) file = &each;
    if (file == nullptr) {
        struct stat status;
        const int fd = open_here(request);
        if (fd < 0) return fd;
        kernel_call(SYS_fstat, fd, &status);
        file = &files().emplace_back(LockedFile{status.st_dev, status.st_ino, fd});
        has_files.store(true);
    }
    words.word[0] = file->fd;
    words.word[2] = as_word(data);  // where the lock is
    return 0;
}

ClosingFile::ClosingFile(long fd) noexcept {
    struct stat status;
    if (!has_files.load() || kernel_call(SYS_fstat, fd, &status) != 0) return;
    const std::scoped_lock guard{files_latch};
    const LockedFile* const file = find_file(status.st_dev, status.st_ino);
    has_locks_ = file != nullptr;
    device_ = status.st_dev;
    file_ = status.st_ino;
}

ClosingFile::~ClosingFile() {
    if (!has_locks_) return;
    CallArguments words{{static_cast<long>(device_), static_cast<long>(file_)}};
    if (world()->job.self == node_0) {
        drop_locks_here(words);
        return;
    }
    if (!process_of(node_0)) words.word[0] = 0;  // another host's number
    world()->files->call(node_0, static_cast<long>(LockCall::drop), words, -1, {}, {});
}

void close_beside_locks(int fd) noexcept {
    struct stat status;
    bool is_locked = false;
    if (has_files.load() && kernel_call(SYS_fstat, fd, &status) == 0) {
        const std::scoped_lock guard{files_latch};
        is_locked = find_file(status.st_dev, status.st_ino) != nullptr;
    }
    if (is_locked)
        keep_descriptor(fd);
    else
        kernel_call(SYS_close, fd);
}

}  // namespace hiroba::abi
