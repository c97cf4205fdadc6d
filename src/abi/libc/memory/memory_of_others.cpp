// SPDX-License-Identifier: BSD-3-Clause
// Role: looks a crashed thread's address up in the mappings of node 0.
// Invariant: runs in a thread that is about to die of SIGSEGV, on its alternate stack: calls go to
// the kernel, nothing is allocated.
#include "abi/libc/memory/memory_of_others.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/fatal.hpp"
#include "dsm/memory/fault_handler.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::abi {
namespace {

using dsm::kernel_call;

constinit ProcessPlace first{};

/// The lines of a small file, one at a time, cut at 1 KiB.
class Lines {
public:
    explicit Lines(const char* path) noexcept
        : fd_(kernel_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0)) {}
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;
    ~Lines() {
        if (fd_ >= 0) kernel_call(SYS_close, fd_);
    }
    /// False: no more.
    bool next(std::string_view& line) noexcept {
        std::size_t length = 0;
        for (;;) {
            if (at_ == filled_ && !fill()) break;
            const char c = buffer_[at_++];
            if (c == '\n') break;
            if (length < sizeof line_) line_[length++] = c;
        }
        line = {line_, length};
        return length > 0;
    }

private:
    bool fill() noexcept {
        at_ = filled_ = 0;
        if (fd_ < 0) return false;
        const long got = kernel_call(SYS_read, fd_, buffer_, sizeof buffer_);
        if (got > 0) filled_ = static_cast<std::size_t>(got);
        return got > 0;
    }
    long fd_;
    char buffer_[4096];
    char line_[1024];
    std::size_t at_ = 0, filled_ = 0;
};

/// The line of a maps file for `address`; false: none.
bool find_mapping(const char* path, std::uintptr_t address, char (&found)[1024]) noexcept {
    Lines lines{path};
    for (std::string_view line; lines.next(line);) {
        std::uintptr_t begin = 0, end = 0;
        const char* const stop = line.data() + line.size();
        const auto first_number = std::from_chars(line.data(), stop, begin, 16);
        if (first_number.ptr == stop) continue;
        std::from_chars(first_number.ptr + 1, stop, end, 16);
        if (address < begin || address >= end) continue;
        const std::size_t bytes = std::min(line.size(), sizeof found - 1);
        std::memcpy(found, line.data(), bytes);
        found[bytes] = 0;
        return true;
    }
    return false;
}

/// The kind of file that a line of a maps file names behind range, permissions, offset, device and
/// inode.
const char* kind_of(const char* line) noexcept {
    const char* name = line;
    for (int field = 0; field < 5; ++field) {
        while (*name != 0 && *name != ' ') ++name;
        while (*name == ' ') ++name;
    }
    if (std::strncmp(name, "/SYSV", 5) == 0) return "System V shared memory";
    if (std::strncmp(name, "[heap]", 6) == 0) return "the heap of its C library";
    return *name != 0 ? name : "mapped at a fixed place outside of global memory, or for code";
}

void explain(std::uintptr_t address, bool write) noexcept {
    char line[1024], path[64];
    // Mapped here, too: then it is a matter of permissions, as in the bare program.
    if (find_mapping("/proc/self/maps", address, line)) return;
    std::snprintf(path, sizeof path, "/proc/%ld/maps", static_cast<long>(first.process));
    if (!find_mapping(path, address, line)) return;
    say("SIGSEGV: %s of 0x%lx, which is memory of node 0 alone (%s): other nodes do not see it. "
        "Use "
        "malloc, or mmap without a fixed address, or run on one node (-n 1)",
        write ? "write" : "read", static_cast<unsigned long>(address), kind_of(line));
}

}  // namespace

ProcessPlace own_process_place() noexcept {
    ProcessPlace place;
    place.process = kernel_call(SYS_getpid);
    struct stat names {};
    utsname host{};
    // A number means the same where host and name space of processes are the same.
    if (stat("/proc/self/ns/pid", &names) != 0 || uname(&host) != 0) return place;
    place.host = 0xcbf2'9ce4'8422'2325;  // FNV-1a
    for (const char c : std::string_view(host.nodename))
        place.host = (place.host ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
    place.host ^= names.st_ino;
    return place;
}

void explain_memory_of(const ProcessPlace& first_node) noexcept {
    const ProcessPlace own = own_process_place();
    if (own.host == 0 || first_node.host != own.host || first_node.process == own.process) return;
    first = first_node;
    dsm::explain_deaths(&explain);
}

}  // namespace hiroba::abi
