// SPDX-License-Identifier: BSD-3-Clause
// Role: the early arena: a pointer that only rises.
#include "abi/libc/memory/malloc_early.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bytes.hpp"
#include "base/fatal.hpp"
#include "dsm/memory/reserved_range.hpp"

namespace hiroba::abi {

void EarlyArena::open(dsm::AddressRange range, dsm::AddressRange global) noexcept {
    if (const int error = dsm::reserve_range(global); error != 0)
        die(exit_environment, "%lu bytes at 0x%lx for global memory refused (error %d): %s",
            global.bytes, global.address, error,
            error == EEXIST ? "a library has mapped memory there"
                            : "raise ulimit -v, or lower HIROBA_HEAP");
    if (mprotect(reinterpret_cast<void*>(range.address), range.bytes, PROT_READ | PROT_WRITE) !=
        0) {
        const int error = errno;
        rlimit data{};
        const bool by_data =
            error == ENOMEM && getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY;
        die(exit_environment, "%lu bytes at 0x%lx for early allocations refused (error %d): %s",
            range.bytes, range.address, error,
            by_data ? "raise ulimit -d" : "let mprotect make memory writable");
    }
    range_ = range;
    next_.store(range.address, std::memory_order_relaxed);
}

void* EarlyArena::allocate(std::size_t bytes, std::size_t alignment) noexcept {
    alignment = std::max<std::size_t>(alignment, 16);
    if (bytes > range_.bytes || alignment > range_.bytes) return nullptr;
    const std::size_t usable = round_up(std::max<std::size_t>(bytes, 1), 16);
    // Relaxed: a block belongs to the thread that took it; its memory was zero all along.
    std::uintptr_t at = next_.load(std::memory_order_relaxed);
    std::uintptr_t block = 0;
    do {
        block = round_up(at + sizeof(std::size_t), alignment);
        if (block > range_.end() || usable > range_.end() - block) return nullptr;
    } while (!next_.compare_exchange_weak(at, block + usable, std::memory_order_relaxed));
    reinterpret_cast<std::size_t*>(block)[-1] = usable;
    return reinterpret_cast<void*>(block);
}

}  // namespace hiroba::abi
