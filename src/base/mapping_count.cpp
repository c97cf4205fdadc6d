// SPDX-License-Identifier: BSD-3-Clause
#include "base/mapping_count.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/fatal.hpp"

namespace hiroba {
namespace {

/// A few calls of `visit(piece)` for the bytes of a file; none when it cannot be read.
template <class Visit>
void for_pieces(const char* path, Visit&& visit) noexcept {
    const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;
    std::array<char, 4096> piece;
    for (long got; (got = syscall(SYS_read, fd, piece.data(), piece.size())) > 0;)
        visit(piece.data(), piece.data() + got);
    syscall(SYS_close, fd);
}

std::uint64_t enough(const MappingCount& count) noexcept {
    return std::max(4 * count.limit, std::uint64_t{262144});
}

}  // namespace

MappingCount count_mappings() noexcept {
    MappingCount count;
    for_pieces("/proc/self/maps", [&](const char* begin, const char* end) {
        count.used += static_cast<std::uint64_t>(std::count(begin, end, '\n'));
    });
    for_pieces("/proc/sys/vm/max_map_count", [&](const char* begin, const char* end) {
        for (; begin != end && *begin >= '0' && *begin <= '9'; ++begin)
            count.limit = count.limit * 10 + static_cast<std::uint64_t>(*begin - '0');
    });
    return count;
}

void die_without_mappings(const char* for_what, std::uintptr_t address) noexcept {
    const MappingCount count = count_mappings();
    die(exit_environment,
        "%s at 0x%lx needs one or two mappings more: %lu are in use, of %lu that a process may "
        "have; raise vm.max_map_count (sysctl vm.max_map_count=%lu), or use the engine uffd "
        "(HIROBA_FAULT_ENGINE), which needs none",
        for_what, address, count.used, count.limit, enough(count));
}

void die_without_memory(const char* what, std::size_t bytes, int error) noexcept {
    const MappingCount count = count_mappings();
    die(exit_environment,
        "no memory for %s of %lu bytes: error %d, with %lu mappings in use of %lu that a process "
        "may have; raise vm.max_map_count (sysctl vm.max_map_count=%lu) or the memory limit "
        "(hiroba info -l)",
        what, bytes, error, count.used, count.limit, enough(count));
}

}  // namespace hiroba
