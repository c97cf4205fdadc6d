// SPDX-License-Identifier: BSD-3-Clause
// Role: which transfers were ended early, and their continuation: the same call with what is left.
#include "abi/libc/calls/short_counts.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "abi/libc/calls/kernel_access.hpp"
#include "abi/world.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;
using dsm::kernel_failed;

constexpr std::size_t vector_max = 1024;  ///< longer ones the kernel refuses
constexpr int offset_argument = 3;

struct Kind {
    bool transfers = false;
    bool reads = false;  ///< into the program's memory
    bool vector = false;
    bool positioned = false;  ///< its fourth argument is a place in the file, -1: the current one
};

constexpr Kind kind_of(long number) noexcept {
    switch (number) {
        case SYS_read: return {true, true, false, false};
        case SYS_write: return {true, false, false, false};
        case SYS_pread64: return {true, true, false, true};
        case SYS_pwrite64: return {true, false, false, true};
        case SYS_readv: return {true, true, true, false};
        case SYS_writev: return {true, false, true, false};
        case SYS_preadv:
        case SYS_preadv2: return {true, true, true, true};
        case SYS_pwritev:
        case SYS_pwritev2: return {true, false, true, true};
        default: return {};
    }
}

/// What such a call has left to move.
class Rest {
public:
    Rest(Kind kind, const CallArguments& arguments, std::size_t done) noexcept : kind_(kind) {
        const long* const a = arguments.word;
        if (!kind.vector) {
            add({reinterpret_cast<void*>(a[1]), static_cast<std::size_t>(a[2])}, done);
            return;
        }
        const auto* const all = reinterpret_cast<const iovec*>(a[1]);
        const auto count = static_cast<std::size_t>(a[2]);
        for (std::size_t i = 0; i < std::min(count, vector_max); ++i) add(all[i], done);
    }
    bool is_empty() const noexcept { return count_ == 0; }
    /// Whether a page of it is not mapped, so that the kernel ends a transfer there.
    bool lacks_page() const noexcept {
        return std::ranges::any_of(std::span(parts_).first(count_), [](const iovec& part) {
            return is_global(part.iov_base) &&
                   world()->memory->lacks_page(part.iov_base, part.iov_len);
        });
    }
    CallArguments call(const CallArguments& first, long done) const noexcept {
        CallArguments next = first;
        long* const a = next.word;
        a[1] = reinterpret_cast<long>(kind_.vector ? parts_.data() : parts_[0].iov_base);
        a[2] = static_cast<long>(kind_.vector ? count_ : parts_[0].iov_len);
        if (kind_.positioned && a[offset_argument] >= 0) a[offset_argument] += done;
        return next;
    }

private:
    void add(iovec part, std::size_t& done) noexcept {
        const std::size_t passed = std::min(done, part.iov_len);
        done -= passed;
        if (passed == part.iov_len) return;
        parts_[count_++] = {static_cast<std::byte*>(part.iov_base) + passed, part.iov_len - passed};
    }

    Kind kind_;
    std::size_t count_ = 0;
    std::array<iovec, vector_max> parts_;
};

/// How large this process may make a file: what goes beyond would be a signal.
std::uint64_t file_bytes_max() noexcept {
    rlimit limit{};
    kernel_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit);
    return limit.rlim_cur;
}

/// Whether a file of `size` has more to read, or may get longer.
bool is_longer(Kind kind, const CallArguments& arguments, long done, long size) noexcept {
    const long offset = arguments.word[offset_argument];
    const bool placed = kind.positioned && offset >= 0;
    const long at = placed ? offset + done : kernel_call(SYS_lseek, arguments.word[0], 0, SEEK_CUR);
    return static_cast<std::uint64_t>(at) <
           (kind.reads ? static_cast<std::uint64_t>(size) : file_bytes_max());
}

/// Whether a stream has more to read now; what is written there waits for room by itself.
bool is_ready(Kind kind, int fd) noexcept {
    int type = 0;
    socklen_t bytes = sizeof type;
    const bool socket = kernel_call(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0;
    if (socket && type != SOCK_STREAM) return false;
    if (!kind.reads) return true;
    pollfd look{.fd = fd, .events = POLLIN, .revents = 0};
    return kernel_call(SYS_poll, &look, 1, 0) == 1 && (look.revents & POLLIN) != 0;
}

bool was_ended_early(Kind kind, const CallArguments& arguments, const Rest& rest,
                     long done) noexcept {
    const auto fd = static_cast<int>(arguments.word[0]);
    struct stat file {};
    if (kernel_failed(kernel_call(SYS_fstat, fd, &file))) return false;
    // What /proc makes has no size, and some of it waits.
    if (S_ISREG(file.st_mode) && file.st_size > 0)
        return is_longer(kind, arguments, done, file.st_size);
    return rest.lacks_page() && is_ready(kind, fd);
}

/// Not inlined: the vector takes room on the stack of every call otherwise, and so that
/// test/cluster/switched_off.py can switch it off.
/// @return how many bytes the rest has moved; 0: there is none, or it was to end here
[[gnu::noinline]] long move_more(const PinnedBuffers& buffers, Kind kind, long number,
                                 const CallArguments& arguments, long done) noexcept {
    const Rest rest{kind, arguments, static_cast<std::size_t>(done)};
    if (rest.is_empty() || !was_ended_early(kind, arguments, rest, done)) return 0;
    if (!buffers.map_again()) return 0;
    const CallArguments next = rest.call(arguments, done);
    const long* const a = next.word;
    const long moved = kernel_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return std::max(moved, 0L);
}

}  // namespace

long finish_transfer(const PinnedBuffers& buffers, long number, const CallArguments& arguments,
                     long done) noexcept {
    const Kind kind = kind_of(number);
    if (!kind.transfers || done <= 0 || (!kind.vector && done >= arguments.word[2])) return done;
    for (;;) {
        const long moved = move_more(buffers, kind, number, arguments, done);
        if (moved == 0) return done;
        done += moved;
    }
}

}  // namespace hiroba::abi
