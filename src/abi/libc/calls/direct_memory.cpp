// SPDX-License-Identifier: BSD-3-Clause
// Role: which calls these are, and what of global memory they use. Invariant: see the header. No
// file is so long that a place in it could be taken for an address of global memory.
#include "abi/libc/calls/direct_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "abi/libc/calls/kernel_access.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi {
namespace {

bool is_pipe(long fd) noexcept {
    struct stat file {};
    return !dsm::kernel_failed(dsm::kernel_call(SYS_fstat, fd, &file)) && S_ISFIFO(file.st_mode);
}

std::size_t bytes_of(long number, const long* a) noexcept {
    const bool vector = number == SYS_preadv || number == SYS_preadv2 || number == SYS_pwritev ||
                        number == SYS_pwritev2 || number == SYS_readv || number == SYS_writev;
    if (!vector) return static_cast<std::size_t>(a[2]);
    constexpr long parts_max = 1024;  // longer ones the kernel refuses
    std::size_t sum = 0;
    const auto* const parts = reinterpret_cast<const iovec*>(a[1]);
    for (long i = 0; i < std::min(a[2], parts_max); ++i) sum += parts[i].iov_len;
    return sum;
}

}  // namespace

ThroughCache::ThroughCache(long number, const CallArguments& arguments) noexcept
    : arguments_(arguments) {
    long* const a = arguments_.word;
    if (number == SYS_open) a[1] &= ~long{O_DIRECT};
    if (number == SYS_openat) a[2] &= ~long{O_DIRECT};
    if (number == SYS_openat2 && a[2] != 0 && a[3] == sizeof how_) {
        std::memcpy(&how_, reinterpret_cast<const void*>(a[2]), sizeof how_);
        if ((how_.flags & O_DIRECT) == 0) return;
        how_.flags &= ~std::uint64_t{O_DIRECT};
        a[2] = dsm::kernel::as_word(&how_);
    }
    const bool sets = number == SYS_fcntl && a[1] == F_SETFL && (a[2] & O_DIRECT) != 0;
    if (sets && !is_pipe(a[0])) a[2] &= ~long{O_DIRECT};
}

void refuse_soft_dirty(const char* path) noexcept {
    if (path == nullptr) return;
    const std::string_view name{path};
    if (!name.starts_with("/proc/") || !name.ends_with("/clear_refs")) return;
    die(exit_environment,
        "%s refused: the kernel of each node notes what that node alone has written; protect pages "
        "by mprotect and note SIGSEGV, or run on one node (-n 1)",
        path);
}

bool add_memory_as_file(PinnedBuffers& buffers, long number, const CallArguments& arguments,
                        long place) noexcept {
    const long* const a = arguments.word;
    bool writes = false;
    switch (number) {
        case SYS_write:
        case SYS_writev: writes = true; [[fallthrough]];
        case SYS_read:
        case SYS_readv: break;
        case SYS_pwrite64:
        case SYS_pwritev:
        case SYS_pwritev2: writes = true; [[fallthrough]];
        case SYS_pread64:
        case SYS_preadv:
        case SYS_preadv2:
            if (place < 0) place = a[3];
            break;
        default: return false;
    }
    const auto* const address = reinterpret_cast<const void*>(place);
    if (place <= 0 || !is_global(address)) return false;
    buffers.add(address, bytes_of(number, a), writes);
    return true;
}

}  // namespace hiroba::abi
