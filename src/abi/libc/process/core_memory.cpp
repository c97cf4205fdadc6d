// SPDX-License-Identifier: BSD-3-Clause
// Which pages there are the kernel knows by the file that global memory is mapped from.
#include "abi/libc/process/core_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/settings.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

constinit int memory_fd = -1;  ///< of the file behind global memory; -1: cores are to be small

/// The descriptor of dsm's private memory.
int find_memory() noexcept {
    int found = -1;
    DIR* const folder = ::opendir("/proc/self/fd");
    if (folder == nullptr) return found;
    while (const dirent* const entry = ::readdir(folder)) {
        char target[64];
        const ssize_t length = ::readlinkat(::dirfd(folder), entry->d_name, target, sizeof target);
        if (length > 0 && std::string_view(target, static_cast<std::size_t>(length))
                              .starts_with("/memfd:hiroba-private"))
            found = ::atoi(entry->d_name);
    }
    ::closedir(folder);
    return found;
}

/// Mappings of files without a name, as global memory is, go into cores by this bit.
void filter_lets_shared_memory_in() noexcept {
    constexpr unsigned long shared_anonymous = 2;
    const int fd = ::open("/proc/self/coredump_filter", O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    char text[32] = {};
    if (::read(fd, text, sizeof text - 1) > 0) {
        const unsigned long filter = ::strtoul(text, nullptr, 16) | shared_anonymous;
        ::dprintf(fd, "0x%lx\n", filter);
    }
    ::close(fd);
}

}  // namespace

void prepare_core_memory() noexcept {
    if (setting("HIROBA_CORE") != "memory") return;
    memory_fd = find_memory();
    filter_lets_shared_memory_in();
    rlimit limit{};
    if (dsm::kernel_call(SYS_getrlimit, RLIMIT_CORE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    dsm::kernel_call(SYS_setrlimit, RLIMIT_CORE, &limit);
}

void put_memory_into_core(const dsm::AddressMap& map) noexcept {
    if (memory_fd < 0) return;
    // Few mappings: a process may have some 65,000. The kernel fills the gaps in between.
    constexpr std::uint64_t gap_bytes = std::uint64_t{1} << 20;
    const dsm::AddressRange early = map.early_arena(), all = map.main_range();
    const std::uint64_t end = all.bytes;
    std::uint64_t at = early.address - all.address, begin = at, behind = at;
    const auto put = [&] {
        if (behind > begin)
            dsm::kernel_call(SYS_madvise, all.address + begin, behind - begin, MADV_DODUMP);
    };
    while (at < end) {
        const long data = dsm::kernel_call(SYS_lseek, memory_fd, at, SEEK_DATA);
        if (data < 0 || static_cast<std::uint64_t>(data) >= end) break;
        const long hole = dsm::kernel_call(SYS_lseek, memory_fd, data, SEEK_HOLE);
        if (hole <= data) break;
        if (static_cast<std::uint64_t>(data) > behind + gap_bytes) {
            put();
            begin = static_cast<std::uint64_t>(data);
        }
        at = behind = std::min(static_cast<std::uint64_t>(hole), end);
    }
    put();
}

}  // namespace hiroba::abi
