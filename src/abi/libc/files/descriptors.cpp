// SPDX-License-Identifier: BSD-3-Clause
#include "abi/libc/files/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "abi/libc/calls/system_call_trap.hpp"
#include "abi/libc/calls/system_calls.hpp"
#include "abi/libc/files/standard_streams.hpp"
#include "abi/libc/process/resource_limits.hpp"
#include "base/own_descriptors.hpp"
#include "base/own_libraries.hpp"

namespace hiroba::abi {
namespace {

/// Below this, a node could not open what an ordinary program opens.
constexpr std::uint32_t width_min = 128;
/// The kernel's table of a process grows with its highest number.
constexpr std::uint32_t width_max = 1u << 16;
/// How many numbers of its own a node has used before the table grows again.
constexpr std::uint32_t room = 1024;

/// What fits an fd_set is divided among the nodes, but for where the runtime's own lie
/// (base/own_descriptors.cpp): select() takes any node's. Its end, and where the widths begin then.
constexpr std::uint32_t low_end = 896, widths_begin = 1024;

constinit std::uint32_t width = 0;      ///< 0: numbers tell nothing
constinit std::uint32_t low_width = 0;  ///< 0: the widths begin at 0, and there are no low ones
constinit std::uint32_t self_rank = 0;
constinit std::uint64_t limit_at_start = UINT64_MAX;  ///< where it was raised since
constinit std::uint32_t node_count = 1;

/// The calls that name a directory and a path, of which the path may be none: newfstatat() of an
/// empty one is what fstat() has become, utimensat() without one futimens().
bool has_no_path(long number, long path) noexcept {
    constexpr long faccessat2 = 439, fchmodat2 = 452;
    switch (number) {
        case SYS_utimensat: return path == 0;
        case SYS_newfstatat:
        case SYS_statx:
        case SYS_fchownat:
        case faccessat2:
        case fchmodat2: return path != 0 && *pointer<const char>(path) == '\0';
        default: return false;
    }
}

std::uint32_t first_of_width(std::uint32_t rank) noexcept {
    return (low_width == 0 ? 0 : widths_begin) + rank * width;
}
bool is_low(std::uint32_t fd, std::uint32_t rank) noexcept {
    return fd >= rank * low_width && fd < (rank + 1) * low_width;
}

/// May be none of the job's nodes.
std::uint32_t rank_of_number(std::uint32_t fd) noexcept {
    if (low_width == 0) return fd / width;
    if (fd < low_end) return fd / low_width;
    return fd < widths_begin ? node_count : (fd - widths_begin) / width;
}
/// How many of its node's come before it.
std::uint32_t index_of_number(std::uint32_t fd) noexcept {
    if (width == 0) return fd;
    if (low_width == 0) return fd % width;
    return fd < low_end ? fd % low_width : low_width + (fd - widths_begin) % width;
}

/// A copy of `fd` that is this node's by its number. Negated error number: there is none.
long copy_with_own_number(long fd) noexcept {
    const long flags = dsm::kernel_call(SYS_fcntl, fd, F_GETFD);
    const int copies = (flags & FD_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD;
    if (low_width != 0 && self_rank != 0) {
        const long low = dsm::kernel_call(SYS_fcntl, fd, copies, self_rank * low_width);
        if (low >= 0 && is_low(static_cast<std::uint32_t>(low), self_rank)) return low;
        if (low >= 0) dsm::kernel_call(SYS_close, low);
    }
    return dsm::kernel_call(SYS_fcntl, fd, copies, first_of_width(self_rank));
}

bool is_open_here(long fd) noexcept { return dsm::kernel_call(SYS_fcntl, fd, F_GETFD) >= 0; }

/// Has the kernel make its table large enough for numbers up to `highest`. Where threads share a
/// table, growing it waits until every processor has switched: tens of milliseconds, seconds on a
/// crowded machine, and maybe for the thread that makes a connection to another node.
void grow_table(std::uint32_t highest) noexcept {
    const long some = dsm::kernel_call(SYS_eventfd2, 0, O_CLOEXEC);
    if (some < 0) return;
    const long copy = dsm::kernel_call(SYS_fcntl, some, F_DUPFD_CLOEXEC, highest);
    dsm::kernel_call(SYS_close, some);
    if (copy >= 0) dsm::kernel_call(SYS_close, copy);
}

/// Whether the program has as many open as it has allowed itself; those of the runtime's are not
/// counted.
bool is_over_own_limit(long fd) noexcept {
    const std::uint64_t limit =
        own_descriptor_limit() == UINT64_MAX ? limit_at_start : own_descriptor_limit();
    if (fd < 0 || static_cast<std::uint64_t>(fd) < limit) return false;
    std::uint64_t number = index_of_number(static_cast<std::uint32_t>(fd));
    if (number < limit) return false;
    const long counted = low_width == 0 ? long{room} : long{low_end};
    for (long other = 3; other < fd && other < counted; ++other)
        number -= is_own_descriptor(static_cast<int>(other));
    return number >= limit;
}

}  // namespace

void share_descriptors(NodeId self, std::uint32_t nodes) noexcept {
    note_own_descriptors();
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const bool has_low =
        low_end / nodes >= width_min && limit.rlim_max >= widths_begin + rlim_t{width_min} * nodes;
    const rlim_t wanted =
        std::min<rlim_t>(limit.rlim_cur, (limit.rlim_max - (has_low ? widths_begin : 0)) / nodes);
    if (wanted < width_min) return;
    width = static_cast<std::uint32_t>(std::min<rlim_t>(wanted, width_max));
    low_width = has_low ? low_end / nodes : 0;
    self_rank = self.value;
    node_count = nodes;
    if (self.value == 0 && !has_low) return;
    limit_at_start = limit.rlim_cur;
    limit.rlim_cur = std::min<rlim_t>(
        limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, first_of_width(self_rank) + width));
    setrlimit(RLIMIT_NOFILE, &limit);
    grow_table(has_low ? low_end : first_of_width(self_rank) + std::min(width, room) - 1);
}

std::optional<NodeId> foreign_owner(const SystemCall& row,
                                    const CallArguments& arguments) noexcept {
    const bool on_descriptor = row.descriptor || has_no_path(row.number, arguments.word[1]);
    return on_descriptor ? foreign_owner(static_cast<int>(arguments.word[0])) : std::nullopt;
}

std::optional<NodeId> foreign_owner(int fd) noexcept {
    if (width == 0 || fd < 0) return std::nullopt;
    if (is_standard(fd)) {
        const auto standard = standard_owner(fd);
        return standard && standard->value != self_rank ? standard : std::nullopt;
    }
    const std::uint32_t owner = rank_of_number(static_cast<std::uint32_t>(fd));
    if (owner == self_rank || owner >= node_count || is_own_descriptor(fd) ||
        is_kept_descriptor(fd)) {
        return std::nullopt;
    }
    // Where opening is not examined the numbers tell less: what is open here is meant. Node 0 may
    // have more open than fit its width.
    const bool numbers_tell = self_rank != 0 && system_calls_are_examined();
    if (!numbers_tell && is_open_here(fd)) return std::nullopt;
    return NodeId{owner};
}

std::optional<NodeId> node_of_number(int fd) noexcept {
    if (width == 0 || fd < 0) return std::nullopt;
    const std::uint32_t owner = rank_of_number(static_cast<std::uint32_t>(fd));
    return owner < node_count ? std::optional{NodeId{owner}} : std::nullopt;
}

long number_new_descriptor(long fd) noexcept {
    if (is_over_own_limit(fd)) {
        dsm::kernel_call(SYS_close, fd);
        return -EMFILE;
    }
    if (fd < 3 || width == 0 || !system_calls_are_examined()) return fd;
    const auto number = static_cast<std::uint32_t>(fd);
    if (number >= first_of_width(self_rank) || is_low(number, self_rank)) return fd;
    const long moved = copy_with_own_number(fd);
    dsm::kernel_call(SYS_close, fd);
    return moved < 0 ? -EMFILE : moved;
}

}  // namespace hiroba::abi
