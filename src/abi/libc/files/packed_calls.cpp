// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/packed_calls.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/descriptors.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi {
namespace {

/// The memory of one call in one message: words that are addresses become places in it.
class PackedCall {
public:
    explicit PackedCall(const CallArguments& given) noexcept
        : words_(given),
          room_bytes_(world()->files->chunk_bytes()),
          room_(new (std::nothrow) std::byte[room_bytes_]) {}

    /// False where the message has no room for it, or nobody knows what it is.
    bool add(const Touch& touch) noexcept {
        void* const at = pointer<void>(words_.word[touch.argument]);
        const auto count =
            touch.count == no_count ? 1 : static_cast<std::size_t>(words_.word[touch.count]);
        if (touch.use == Use::address) return add_address(touch, at);
        if (at == nullptr) return true;
        switch (touch.use) {
            case Use::text:
                return put(touch.argument, at, strlen(static_cast<char*>(at)) + 1, false);
            case Use::in: return put(touch.argument, at, touch.bytes * count, false);
            case Use::out:
                return put(touch.argument, at, touch.bytes * count, true,
                           touch.count == no_count ? 0 : touch.bytes);
            default: return false;
        }
    }

    long call(NodeId owner, long number) noexcept {
        const long result =
            world()->files->call_packed(owner, number, words_, places_, {room_.get(), used_bytes_});
        if (result < 0) return result;
        const bool looks_at_all = number == SYS_poll || number == SYS_ppoll;
        for (const Part* part = parts_; part != parts_ + count_; ++part) {
            if (!part->comes_back) continue;
            std::size_t filled = part->bytes;
            if (part->length != nullptr)
                filled = std::min<std::size_t>(filled, *part->length);  // which came before
            if (part->unit != 0 && !looks_at_all)
                filled = std::min(filled, part->unit * static_cast<std::size_t>(result));
            std::memcpy(part->at, room_.get() + part->place, filled);
        }
        return result;
    }

private:
    struct Part {
        void* at;
        std::size_t place, bytes;
        bool comes_back;
        std::size_t unit;         ///< so many bytes the result counts as one; 0: all are written
        const socklen_t* length;  ///< of what is written; nullptr: all
    };

    /// A socklen_t and as many bytes.
    bool add_address(const Touch& touch, void* at) noexcept {
        auto* const length = pointer<socklen_t>(words_.word[touch.count]);
        if (length == nullptr) return true;
        const socklen_t bytes = *length;
        return put(touch.count, length, sizeof bytes, true) &&
               (at == nullptr || put(touch.argument, at, bytes, true, 0, length));
    }

    // What comes back goes there, too: the kernel may leave some of it as it is.
    bool put(unsigned word, void* at, std::size_t bytes, bool comes_back, std::size_t unit = 0,
             const socklen_t* length = nullptr) noexcept {
        constexpr std::size_t alignment = 16;
        const std::size_t place = (used_bytes_ + alignment - 1) / alignment * alignment;
        if (!room_ || place > room_bytes_ || bytes > room_bytes_ - place) return false;
        std::memset(room_.get() + used_bytes_, 0, place - used_bytes_);
        std::memcpy(room_.get() + place, at, bytes);
        parts_[count_++] = {at, place, bytes, comes_back, unit, length};
        words_.word[word] = static_cast<long>(place);
        places_ |= 1u << word;
        used_bytes_ = place + bytes;
        return true;
    }

    CallArguments words_;
    std::size_t room_bytes_, used_bytes_ = 0;
    std::unique_ptr<std::byte[]> room_;
    std::uint32_t places_ = 0;
    std::size_t count_ = 0;
    Part parts_[2 * SystemCall::touches_max];
};

/// Where data may go over in pieces.
bool is_stream(NodeId owner, int fd) noexcept {
    int type = 0;
    socklen_t bytes = sizeof type;
    const CallArguments words{
        {fd, SOL_SOCKET, SO_TYPE, dsm::kernel::as_word(&type), dsm::kernel::as_word(&bytes)}};
    return carry_over(owner, *find_system_call(SYS_getsockopt), words) == 0 && type == SOCK_STREAM;
}

/// sendto and recvfrom of any length.
long transfer(NodeId owner, long number, const CallArguments& given) noexcept {
    constexpr std::size_t address_room = 512;
    const std::size_t most = world()->files->chunk_bytes() - address_room;
    const SystemCall& row = *find_system_call(number);
    const auto total = static_cast<std::size_t>(given.word[2]);
    if (total <= most) return carry_over(owner, row, given);
    if (!is_stream(owner, static_cast<int>(given.word[0])))
        return refuse_on_owner(owner, number, given);
    const bool whole = number == SYS_sendto || (given.word[3] & MSG_WAITALL) != 0;
    std::size_t done = 0;
    do {
        CallArguments piece = given;
        const std::size_t bytes = std::min(total - done, most);
        piece.word[1] += static_cast<long>(done);
        piece.word[2] = static_cast<long>(bytes);
        const long result = carry_over(owner, row, piece);
        if (result < 0) return done > 0 ? static_cast<long>(done) : result;
        done += static_cast<std::size_t>(result);
        if (static_cast<std::size_t>(result) < bytes) break;
    } while (whole && done < total);
    return static_cast<long>(done);
}

/// Copies between the buffers that a message names and one buffer.
void copy_entries(const msghdr& message, std::byte* room, std::size_t bytes, bool gather) noexcept {
    for (std::size_t i = 0; i < message.msg_iovlen && bytes > 0; ++i) {
        const iovec& entry = message.msg_iov[i];
        const std::size_t part = std::min(bytes, entry.iov_len);
        std::memcpy(gather ? room : entry.iov_base, gather ? entry.iov_base : room, part);
        room += part;
        bytes -= part;
    }
}

/// sendmmsg and recvmmsg, a message at a time.
long transfer_messages(NodeId owner, long number, const CallArguments& given) noexcept {
    const bool sends = number == SYS_sendmmsg;
    if (!sends && given.word[4] != 0) return refuse_on_owner(owner, number, given);
    auto* const messages = pointer<mmsghdr>(given.word[1]);
    const auto count = static_cast<unsigned>(given.word[2]);
    const bool waits_for_one = !sends && (given.word[3] & MSG_WAITFORONE) != 0;
    for (unsigned i = 0; i < count; ++i) {
        const long flags = (given.word[3] & ~long{MSG_WAITFORONE}) |
                           (waits_for_one && i > 0 ? long{MSG_DONTWAIT} : 0);
        const CallArguments one{{given.word[0], dsm::kernel::as_word(&messages[i].msg_hdr), flags}};
        const long result = carry_socket_transfer(owner, sends ? SYS_sendmsg : SYS_recvmsg, one);
        if (result < 0) return i > 0 ? static_cast<long>(i) : result;
        messages[i].msg_len = static_cast<unsigned>(result);
    }
    return static_cast<long>(count);
}

/// Calls `visit` for each descriptor that goes along with a message.
template <class Visit>
void for_each_passed(msghdr& message, Visit&& visit) noexcept {
    if (message.msg_control == nullptr) return;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
         each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) visit(CMSG_DATA(each) + i * sizeof(int));
    }
}

/// The same for all messages of a call that sends or receives them.
template <class Visit>
void for_each_passed(long number, const CallArguments& given, long messages,
                     Visit&& visit) noexcept {
    if (number == SYS_sendmsg || number == SYS_recvmsg) {
        if (auto* const message = pointer<msghdr>(given.word[1])) for_each_passed(*message, visit);
        return;
    }
    auto* const batch = pointer<mmsghdr>(given.word[1]);
    for (long i = 0; batch != nullptr && i < messages; ++i)
        for_each_passed(batch[i].msg_hdr, visit);
}

/// A call that copies from one descriptor to another.
struct Copy {
    long from, to;
    long* from_place;  ///< instead of where the file stands, which stays then
    long* to_place;
    std::size_t bytes;
    bool is_whole;  ///< a part is no answer
};

std::optional<Copy> copy_of(long number, const CallArguments& given) noexcept {
    const long* const a = given.word;
    if (number == SYS_sendfile)
        return Copy{a[1], a[0], pointer<long>(a[2]), nullptr, static_cast<std::size_t>(a[3]), true};
    const bool splices = number == SYS_splice && (a[5] & SPLICE_F_NONBLOCK) == 0;
    if (!splices && number != SYS_copy_file_range) return std::nullopt;
    return Copy{a[0],
                a[2],
                pointer<long>(a[1]),
                pointer<long>(a[3]),
                static_cast<std::size_t>(a[4]),
                number == SYS_copy_file_range};
}

/// @return how many bytes, or the negated error number if none
long write_piece(const Copy& copy, const std::byte* piece, std::size_t bytes) noexcept {
    std::size_t done = 0;
    while (done < bytes) {
        CallArguments words{
            {copy.to, dsm::kernel::as_word(piece + done), static_cast<long>(bytes - done)}};
        if (copy.to_place != nullptr) words.word[3] = *copy.to_place;
        const long put =
            perform_system_call(copy.to_place == nullptr ? SYS_write : SYS_pwrite64, words);
        if (put <= 0) return done > 0 ? static_cast<long>(done) : put;
        if (copy.to_place != nullptr) *copy.to_place += put;
        done += static_cast<std::size_t>(put);
    }
    return static_cast<long>(done);
}

long copy_through_memory(const Copy& copy) noexcept {
    constexpr std::size_t piece_max = std::size_t{64} << 10;
    const std::unique_ptr<std::byte[]> piece(new (std::nothrow) std::byte[piece_max]);
    if (!piece) return -ENOMEM;
    std::size_t done = 0;
    while (done < copy.bytes) {
        const auto wanted = static_cast<long>(std::min(copy.bytes - done, piece_max));
        CallArguments words{{copy.from, dsm::kernel::as_word(piece.get()), wanted}};
        if (copy.from_place != nullptr) words.word[3] = *copy.from_place;
        const long got =
            perform_system_call(copy.from_place == nullptr ? SYS_read : SYS_pread64, words);
        if (got <= 0) return done > 0 ? static_cast<long>(done) : got;
        const long put = write_piece(copy, piece.get(), static_cast<std::size_t>(got));
        if (copy.from_place != nullptr && put > 0) *copy.from_place += put;
        if (copy.from_place == nullptr && put < got)  // what was not written is still to be read
            perform_system_call(SYS_lseek, {{copy.from, std::max(put, 0L) - got, SEEK_CUR}});
        if (put < 0) return done > 0 ? static_cast<long>(done) : put;
        done += static_cast<std::size_t>(put);
        if (put < got || !copy.is_whole) break;
    }
    return static_cast<long>(done);
}

}  // namespace

long refuse_on_owner(NodeId owner, long number, const CallArguments& given) noexcept {
    die(exit_environment,
        "descriptor %d belongs to node %u: system call %lu on it refused here. Make it on the node "
        "that opened it, open the file here, or run on one node (-n 1)",
        static_cast<int>(given.word[0]), owner.value, static_cast<unsigned long>(number));
}

long carry_over(NodeId owner, const SystemCall& row, const CallArguments& given) noexcept {
    PackedCall packed{given};
    for (const Touch& touch : row.touches) {
        if (touch.use == Use::none) break;
        if (!packed.add(touch)) return refuse_on_owner(owner, row.number, given);
    }
    return packed.call(owner, row.number);
}

long carry_socket_transfer(NodeId owner, long number, const CallArguments& given) noexcept {
    if (number == SYS_sendto || number == SYS_recvfrom) return transfer(owner, number, given);
    if (number == SYS_sendmmsg || number == SYS_recvmmsg)
        return transfer_messages(owner, number, given);
    auto* const message = pointer<msghdr>(given.word[1]);
    if (message == nullptr) return -EFAULT;
    if (message->msg_controllen != 0) return refuse_on_owner(owner, number, given);
    std::size_t total = 0;
    for (std::size_t i = 0; i < message->msg_iovlen; ++i) total += message->msg_iov[i].iov_len;
    const std::unique_ptr<std::byte[]> room(new (std::nothrow) std::byte[total + 1]);
    if (!room) return -ENOMEM;
    const bool sends = number == SYS_sendmsg;
    CallArguments words{{given.word[0], dsm::kernel::as_word(room.get()), static_cast<long>(total),
                         given.word[2], dsm::kernel::as_word(message->msg_name), 0}};
    if (sends) {
        words.word[5] = message->msg_namelen;
        copy_entries(*message, room.get(), total, true);
        return transfer(owner, SYS_sendto, words);
    }
    if (message->msg_name != nullptr) words.word[5] = dsm::kernel::as_word(&message->msg_namelen);
    const long result = transfer(owner, SYS_recvfrom, words);
    if (result < 0) return result;
    // With MSG_TRUNC the count may be more than there is room for.
    copy_entries(*message, room.get(), std::min(total, static_cast<std::size_t>(result)), false);
    message->msg_flags = static_cast<std::size_t>(result) > total ? MSG_TRUNC : 0;
    return result;
}

int second_descriptor(long number, const CallArguments& given) noexcept {
    switch (number) {
        case SYS_sendfile: return static_cast<int>(given.word[1]);
        case SYS_copy_file_range:
        case SYS_splice:
        case SYS_epoll_ctl: return static_cast<int>(given.word[2]);
        case SYS_tee: return static_cast<int>(given.word[1]);
        default: return -1;
    }
}

long join_nodes(long number, const CallArguments& given) noexcept {
    if (const auto copy = copy_of(number, given)) return copy_through_memory(*copy);
    const int first = static_cast<int>(given.word[0]), second = second_descriptor(number, given);
    const NodeId self = world()->job.self;
    die(exit_environment,
        "descriptor %d belongs to node %u and %d to node %u: system call %lu on both refused. Open "
        "both on one node, outside of parallel regions, or run on one node (-n 1)",
        first, foreign_owner(first).value_or(self).value, second,
        foreign_owner(second).value_or(self).value, static_cast<unsigned long>(number));
}

void refuse_to_pass(long number, const CallArguments& given) noexcept {
    if (number != SYS_sendmsg && number != SYS_sendmmsg) return;
    for_each_passed(number, given, given.word[2], [&](const unsigned char* at) {
        int fd;
        std::memcpy(&fd, at, sizeof fd);
        if (const auto owner = foreign_owner(fd))
            die(exit_environment,
                "descriptor %d belongs to node %u: a message of this node cannot take it along. "
                "Send it on that node, or run on one node (-n 1)",
                fd, owner->value);
    });
}

void number_received(long number, const CallArguments& given, long result) noexcept {
    if (result < 0 || (number != SYS_recvmsg && number != SYS_recvmmsg)) return;
    for_each_passed(number, given, result, [](unsigned char* at) {
        int fd;
        std::memcpy(&fd, at, sizeof fd);
        fd = static_cast<int>(number_new_descriptor(fd));
        std::memcpy(at, &fd, sizeof fd);
    });
}

}  // namespace hiroba::abi
