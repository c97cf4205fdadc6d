// SPDX-License-Identifier: BSD-3-Clause
// Role: the mappings of this process, ascending, by what /proc/self/maps shows or, from Linux 6.11
// on, tells of one after the other.
// Invariant: calls go to the kernel directly: on a thread of the program libc's would be examined,
// and a stream of libc's would allocate by the program's malloc, if it has one: in global memory,
// which other nodes may not serve yet.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
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

/// Asks the kernel for one mapping at a time (PROCMAP_QUERY): a process may have thousands, and
/// most questions are about a part of the address space.
class MapsQuery {
public:
    MapsQuery()
        : fd_(dsm::kernel_call(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0)) {}
    MapsQuery(const MapsQuery&) = delete;
    MapsQuery& operator=(const MapsQuery&) = delete;
    ~MapsQuery() {
        if (fd_ >= 0) dsm::kernel_call(SYS_close, fd_);
    }

    enum class Answer : std::uint8_t { found, none, unknown };
    /// Finds the first mapping that ends above `address`; unknown: an older kernel.
    Answer next(std::uintptr_t address, Mapping& mapping) const noexcept {
        Query query;
        query.address = address;
        long failed = ask(query);
        if (failed == -ENOENT) return Answer::none;
        if (failed != 0) return Answer::unknown;
        mapping = {{query.begin, query.end - query.begin}};
        if (query.inode != 0) return Answer::found;
        char name[128];  // a longer one is neither
        query.name_bytes = sizeof name;
        query.name = reinterpret_cast<std::uintptr_t>(name);
        failed = ask(query);
        const std::string_view is{name,
                                  failed == 0 && query.name_bytes > 0 ? query.name_bytes - 1 : 0};
        mapping.is_heap = is == "[heap]";
        mapping.is_stack = is == "[stack]";
        return Answer::found;
    }

private:
    /// The kernel's struct procmap_query.
    struct Query {
        static constexpr std::uint64_t covering_or_next = 0x10;
        std::uint64_t bytes = sizeof(Query), flags = covering_or_next, address = 0;
        std::uint64_t begin = 0, end = 0, protection = 0, page_bytes = 0, offset = 0, inode = 0;
        std::uint32_t device[2] = {}, name_bytes = 0, build_id_bytes = 0;
        std::uint64_t name = 0, build_id = 0;
    };
    long ask(Query& query) const noexcept {
        return dsm::kernel_call(SYS_ioctl, fd_, _IOWR('f', 17, Query), &query);
    }
    long fd_;
};

/// Calls `visit` for each mapping that the range has a part of, ascending.
template <class Visit>
void for_each_mapping(dsm::AddressRange in, Visit&& visit) {
    std::uintptr_t from = in.address;
    {
        const MapsQuery query;
        Mapping mapping;
        auto answer = MapsQuery::Answer::none;
        while (from < in.end() &&
               (answer = query.next(from, mapping)) == MapsQuery::Answer::found) {
            if (mapping.range.address >= in.end()) return;
            visit(mapping);
            from = mapping.range.end();
        }
        if (answer != MapsQuery::Answer::unknown) return;
    }
    const MapsText maps;
    for (std::string_view rest = maps.text(); !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        std::uintptr_t begin = 0, end = 0;
        const auto first = std::from_chars(line.data(), line.data() + line.size(), begin, 16);
        if (first.ptr == line.data() + line.size()) continue;
        std::from_chars(first.ptr + 1, line.data() + line.size(), end, 16);
        if (end <= from || begin >= in.end()) continue;
        visit(Mapping{{begin, end - begin}, line.ends_with("[heap]"), line.ends_with("[stack]")});
    }
}

}  // namespace hiroba::omp
