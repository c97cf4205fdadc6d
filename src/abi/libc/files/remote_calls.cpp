// SPDX-License-Identifier: BSD-3-Clause
// Role: which system calls on a descriptor of another node can be carried over, and how: long
// transfers in pieces, vectors entry by entry.
// Invariant: a transfer ends at the first piece that comes back short, like the bare call.
#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/packed_calls.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/world.hpp"

namespace hiroba::abi {
namespace {

constexpr std::size_t stat_bytes = 144, termios_bytes = 36;

std::byte* bytes_at(long word) noexcept {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(word));
}

bool is_write(long number) noexcept { return number == SYS_write || number == SYS_pwrite64; }
bool has_offset(long number) noexcept { return number == SYS_pread64 || number == SYS_pwrite64; }

/// read, write, pread64, pwrite64.
long transfer(NodeId owner, long number, const CallArguments& given) noexcept {
    RemoteFiles& files = *world()->files;
    const auto total = static_cast<std::size_t>(given.word[2]);
    std::byte* const buffer = bytes_at(given.word[1]);
    std::size_t done = 0;
    do {
        const std::size_t piece = std::min(total - done, files.chunk_bytes());
        CallArguments words = given;
        words.word[2] = static_cast<long>(piece);
        if (has_offset(number)) words.word[3] += static_cast<long>(done);
        const bool write = is_write(number);
        const long result =
            files.call(owner, number, words, 1, write ? Bytes{buffer + done, piece} : Bytes{},
                       write ? MutableBytes{} : MutableBytes{buffer + done, piece});
        if (result < 0) return done > 0 ? static_cast<long>(done) : result;
        done += static_cast<std::size_t>(result);
        if (static_cast<std::size_t>(result) < piece) break;
    } while (done < total);
    return static_cast<long>(done);
}

/// So many of the vector's bytes from `from` on as fit into `room`, copied into it or out of it.
std::size_t copy_entries(const iovec* entries, long count, std::size_t from, MutableBytes room,
                         bool gather) noexcept {
    std::size_t copied = 0;
    for (long i = 0; i < count && copied < room.size(); ++i) {
        if (from >= entries[i].iov_len) {
            from -= entries[i].iov_len;
            continue;
        }
        const std::size_t bytes = std::min(entries[i].iov_len - from, room.size() - copied);
        auto* const at = static_cast<std::byte*>(entries[i].iov_base) + from;
        if (gather)
            std::memcpy(room.data() + copied, at, bytes);
        else
            std::memcpy(at, room.data() + copied, bytes);
        copied += bytes;
        from = 0;
    }
    return copied;
}

/// readv, writev and theirs with an offset, `number` being the call for one buffer. The whole goes
/// over as one call, as far as a message takes it: what other writers add to the same file must not
/// come between, and a reader must not wait for more than there is.
long transfer_vector(NodeId owner, long number, CallArguments given, bool has_offset) noexcept {
    const auto* const entries = reinterpret_cast<const iovec*>(bytes_at(given.word[1]));
    const long count = given.word[2];
    if (count < 0 || count > IOV_MAX) return -EINVAL;
    std::size_t total = 0;
    for (long i = 0; i < count; ++i) total += entries[i].iov_len;
    const std::size_t room_bytes = std::min(total, world()->files->chunk_bytes());
    const std::unique_ptr<std::byte[]> room(new (std::nothrow) std::byte[room_bytes + 1]);
    if (!room) return -ENOMEM;
    std::size_t done = 0;
    do {
        const std::size_t piece = std::min(total - done, room_bytes);
        if (is_write(number)) copy_entries(entries, count, done, {room.get(), piece}, true);
        CallArguments one = given;
        one.word[1] = dsm::kernel::as_word(room.get());
        one.word[2] = static_cast<long>(piece);
        if (has_offset) one.word[3] += static_cast<long>(done);
        const long result = transfer(owner, number, one);
        if (result < 0) return done > 0 ? static_cast<long>(done) : result;
        const auto moved = static_cast<std::size_t>(result);
        if (!is_write(number)) copy_entries(entries, count, done, {room.get(), moved}, false);
        done += moved;
        if (moved < piece) break;
    } while (done < total);
    return static_cast<long>(done);
}

/// vmsplice. The pages themselves cannot go to another node's pipe; what they hold can.
long transfer_pages(NodeId owner, const CallArguments& given) noexcept {
    const CallArguments question{{given.word[0], F_GETFL}};
    const long flags = world()->files->call(owner, SYS_fcntl, question, -1, {}, {});
    if (flags < 0) return flags;
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    return transfer_vector(owner, writes ? SYS_write : SYS_read, given, false);
}

/// The kernel fills `bytes` at argument `data_at`.
long ask(NodeId owner, long number, const CallArguments& given, int data_at,
         std::size_t bytes) noexcept {
    return world()->files->call(owner, number, given, data_at, {},
                                {bytes_at(given.word[data_at]), bytes});
}

/// As many whole entries as a message takes; the next call goes on behind them.
long read_entries(NodeId owner, long number, CallArguments given) noexcept {
    const std::size_t bytes =
        std::min(static_cast<std::size_t>(given.word[2]), world()->files->chunk_bytes());
    given.word[2] = static_cast<long>(bytes);
    return ask(owner, number, given, 1, bytes);
}

/// Requests of files, disks and terminals whose number tells of a plain word.
Touch memory_of_number(std::uint32_t request) noexcept {
    const std::uint32_t type = _IOC_TYPE(request), bytes = _IOC_SIZE(request);
    const bool is_known = type == 'f' || type == 'v' || type == 'T' || type == 0x12;
    if (is_known && _IOC_DIR(request) != _IOC_NONE && bytes <= sizeof(long))
        return {2, Use::out, static_cast<std::uint16_t>(bytes)};
    return {2, Use::texts};  // which no message has room for
}

/// What fcntl() and ioctl() use depends on the request. An address of none where nobody knows.
Touch memory_of_request(long number, const CallArguments& given) noexcept {
    if (number == SYS_fcntl) {
        switch (given.word[1]) {
            case F_GETLK:
            case F_SETLK:
            case F_SETLKW:
            case F_OFD_GETLK:
            case F_OFD_SETLK:
            case F_OFD_SETLKW: return {2, Use::out, sizeof(struct flock)};
            case F_GETFD:
            case F_SETFD:
            case F_GETFL:
            case F_SETFL:
            case F_DUPFD:
            case F_DUPFD_CLOEXEC:
            case F_GETPIPE_SZ:
            case F_SETPIPE_SZ:
            case F_ADD_SEALS:
            case F_GET_SEALS:
            case F_GETLEASE: return {};
            default: return {2, Use::texts};
        }
    }
    switch (given.word[1]) {
        case TCGETS:
        case TCSETS:
        case TCSETSW:
        case TCSETSF: return {2, Use::out, termios_bytes};
        case TIOCGWINSZ:
        case TIOCSWINSZ: return {2, Use::out, sizeof(winsize)};
        case FIOCLEX:
        case FIONCLEX:
        case TCFLSH:
        case TCSBRK:
        case TCXONC: return {};
        case FIONREAD:
        case FIONBIO:
        case FIOASYNC:
        case TIOCGPGRP:
        case TIOCSPGRP:
        case TIOCGSID:
        case TIOCOUTQ: return {2, Use::out, sizeof(int)};
        default: return memory_of_number(static_cast<std::uint32_t>(given.word[1]));
    }
}

long perform_request(NodeId owner, long number, const CallArguments& given) noexcept {
    SystemCall row{};
    row.number = static_cast<std::uint16_t>(number);
    row.touches[0] = memory_of_request(number, given);
    return carry_over(owner, row, given);
}

long perform_status(NodeId owner, long number, CallArguments given) noexcept {
    if (number == SYS_newfstatat) given.word[1] = given.word[2];  // its path is empty
    return ask(owner, SYS_fstat, given, 1, stat_bytes);
}

/// As the owner names the directory.
long change_directory(NodeId owner, const CallArguments& given) noexcept {
    char path[PATH_MAX];
    const std::int64_t length =
        world()->files->call(owner, static_cast<std::int64_t>(StreamCall::path), given, -1, {},
                             {reinterpret_cast<std::byte*>(path), sizeof path - 1});
    if (length < 0) return static_cast<long>(length);
    path[length] = '\0';
    return dsm::kernel_call(SYS_chdir, path);
}

/// preadv2 and pwritev2, whose offset may be none.
long transfer_vector_with_flags(NodeId owner, long number, const CallArguments& given) noexcept {
    if (given.word[5] != 0) return refuse_on_owner(owner, number, given);
    const bool writes = number == SYS_pwritev2;
    if (given.word[3] == -1)
        return transfer_vector(owner, writes ? SYS_write : SYS_read, given, false);
    return transfer_vector(owner, writes ? SYS_pwrite64 : SYS_pread64, given, true);
}

}  // namespace

long perform_on_owner(NodeId owner, long number, const CallArguments& given) noexcept {
    const int second = second_descriptor(number, given);
    if (second >= 0 && foreign_owner(second) != owner) return join_nodes(number, given);
    switch (number) {
        case SYS_read:
        case SYS_write:
        case SYS_pread64:
        case SYS_pwrite64: return transfer(owner, number, given);
        case SYS_readv: return transfer_vector(owner, SYS_read, given, false);
        case SYS_writev: return transfer_vector(owner, SYS_write, given, false);
        case SYS_preadv: return transfer_vector(owner, SYS_pread64, given, true);
        case SYS_pwritev: return transfer_vector(owner, SYS_pwrite64, given, true);
        case SYS_preadv2:
        case SYS_pwritev2: return transfer_vector_with_flags(owner, number, given);
        case SYS_sendto:
        case SYS_recvfrom:
        case SYS_sendmmsg:
        case SYS_recvmmsg:
        case SYS_sendmsg:
        case SYS_recvmsg: return carry_socket_transfer(owner, number, given);
        case SYS_fstat:
        case SYS_newfstatat: return perform_status(owner, number, given);
        case SYS_getdents:
        case SYS_getdents64: return read_entries(owner, number, given);
        case SYS_fcntl:
        case SYS_ioctl: return perform_request(owner, number, given);
        case SYS_vmsplice: return transfer_pages(owner, given);
        case SYS_fchdir: return change_directory(owner, given);
        default: return carry_over(owner, *find_system_call(number), given);
    }
}

}  // namespace hiroba::abi
