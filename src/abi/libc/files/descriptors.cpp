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

constinit std::uint32_t width = 0;  ///< 0: numbers tell nothing
constinit std::uint32_t self_rank = 0;
constinit std::uint32_t node_count = 1;

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
    const std::uint64_t limit = own_descriptor_limit();
    if (fd < 0 || static_cast<std::uint64_t>(fd) < limit) return false;
    std::uint64_t number = static_cast<std::uint64_t>(fd) % (width == 0 ? UINT32_MAX : width);
    if (number < limit) return false;
    for (long other = 3; other < fd && other < long{room}; ++other)
        number -= is_own_descriptor(static_cast<int>(other));
    return number >= limit;
}

}  // namespace

void share_descriptors(NodeId self, std::uint32_t nodes) noexcept {
    note_own_descriptors();
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const rlim_t wanted = std::min<rlim_t>(limit.rlim_cur, limit.rlim_max / nodes);
    if (wanted < width_min) return;
    width = static_cast<std::uint32_t>(std::min<rlim_t>(wanted, width_max));
    self_rank = self.value;
    node_count = nodes;
    if (self.value == 0) return;
    limit.rlim_cur = std::min<rlim_t>(
        limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, rlim_t{width} * (self.value + 1)));
    setrlimit(RLIMIT_NOFILE, &limit);
    grow_table(self_rank * width + std::min(width, room) - 1);
}

std::optional<NodeId> foreign_owner(const SystemCall& row,
                                    const CallArguments& arguments) noexcept {
    // newfstatat() of an empty path is what fstat() has become, utimensat() without one futimens().
    const bool on_descriptor = row.descriptor || row.number == SYS_newfstatat ||
                               (row.number == SYS_utimensat && arguments.word[1] == 0);
    return on_descriptor ? foreign_owner(static_cast<int>(arguments.word[0])) : std::nullopt;
}

std::optional<NodeId> foreign_owner(int fd) noexcept {
    if (width == 0 || fd < 0) return std::nullopt;
    if (is_standard(fd)) {
        const auto standard = standard_owner(fd);
        return standard && standard->value != self_rank ? standard : std::nullopt;
    }
    const std::uint32_t owner = static_cast<std::uint32_t>(fd) / width;
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
    const std::uint32_t owner = static_cast<std::uint32_t>(fd) / width;
    return owner < node_count ? std::optional{NodeId{owner}} : std::nullopt;
}

long number_new_descriptor(long fd) noexcept {
    if (is_over_own_limit(fd)) {
        dsm::kernel_call(SYS_close, fd);
        return -EMFILE;
    }
    if (fd < 3 || self_rank == 0 || width == 0 || !system_calls_are_examined()) return fd;
    if (static_cast<std::uint32_t>(fd) >= self_rank * width) return fd;
    const long flags = dsm::kernel_call(SYS_fcntl, fd, F_GETFD);
    const int copy = (flags & FD_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD;
    const long moved = dsm::kernel_call(SYS_fcntl, fd, copy, self_rank * width);
    if (moved < 0) return fd;
    dsm::kernel_call(SYS_close, fd);
    return moved;
}

}  // namespace hiroba::abi
