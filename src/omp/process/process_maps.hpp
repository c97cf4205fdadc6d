// SPDX-License-Identifier: BSD-3-Clause
// Role: the mappings of this process, ascending, by what /proc/self/maps shows.
// Invariant: calls go to the kernel directly: on a thread of the program libc's would be examined,
// and a stream of libc's would allocate by the program's malloc, if it has one: in global memory,
// which other nodes may not serve yet.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "base/address_hint.hpp"
#include "base/fatal.hpp"
#include "dsm/memory/address_map.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::omp {

struct Mapping {
    dsm::AddressRange range;
    bool is_heap = false, is_stack = false;
};

/// The text of /proc/self/maps, in memory that lies out of the way: memory that the allocator
/// mapped for it would be a gap right afterwards.
class MapsText {
public:
    MapsText() {
        const long memory =
            dsm::kernel_call(SYS_mmap, address_hint(room_bytes), room_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        const long fd =
            dsm::kernel_call(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
        if (dsm::kernel_failed(memory) || fd < 0)
            fatal("cannot read /proc/self/maps (error %ld)", -fd);
        begin_ = reinterpret_cast<char*>(memory);
        long got = 0;
        while ((got = dsm::kernel_call(SYS_read, fd, begin_ + bytes_, room_bytes - bytes_)) > 0)
            bytes_ += static_cast<std::size_t>(got);
        dsm::kernel_call(SYS_close, fd);
    }
    MapsText(const MapsText&) = delete;
    MapsText& operator=(const MapsText&) = delete;
    ~MapsText() { dsm::kernel_call(SYS_munmap, begin_, room_bytes); }

    std::string_view text() const noexcept { return {begin_, bytes_}; }

private:
    static constexpr std::size_t room_bytes = std::size_t{256} << 20;  // sparse
    char* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Calls `visit` for each mapping, ascending.
template <class Visit>
void for_each_mapping(Visit&& visit) {
    const MapsText maps;
    for (std::string_view rest = maps.text(); !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        std::uintptr_t begin = 0, end = 0;
        const auto first = std::from_chars(line.data(), line.data() + line.size(), begin, 16);
        if (first.ptr == line.data() + line.size()) continue;
        std::from_chars(first.ptr + 1, line.data() + line.size(), end, 16);
        visit(Mapping{{begin, end - begin}, line.ends_with("[heap]"), line.ends_with("[stack]")});
    }
}

}  // namespace hiroba::omp
