// SPDX-License-Identifier: BSD-3-Clause
// Role: system calls that ask something of the program's own memory: those that are advice, and
// those that map.
// Invariant: a property of a part of global memory (its NUMA node, its lock in memory, its
// protection) is never carried out: the kernel would split the fault engine's mapping, or take
// away what is the engine's.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>

#include <optional>

#include "abi/libc/calls/kernel_access.hpp"

namespace hiroba::abi {

/// Whether a call changes nothing of what the program reads or writes in the memory it names, where
/// that is global. Async-signal-safe.
inline bool is_memory_advice(long number, const long* arguments) noexcept {
    constexpr long home_node = 450, seal = 462;  // of kernels newer than the headers
    switch (number) {
        case SYS_mlockall:
        case SYS_munlockall: return true;
        case SYS_madvise:
            if (arguments[2] == MADV_DONTNEED || arguments[2] == MADV_REMOVE) return false;
            break;
        case SYS_mbind:
        case SYS_mlock:
        case SYS_mlock2:
        case SYS_munlock:
        case home_node:
        case seal: break;
        default: return false;
    }
    return is_global(reinterpret_cast<const void*>(arguments[0]));
}

/// Whether the caller's mappings are the program's memory.
bool serves(const void* return_address) noexcept;
/// Whether they will be when the node is put together.
bool serves_early(const void* return_address) noexcept;

/// What syscall() gives for mmap, munmap, mremap, mprotect, pkey_mprotect and madvise of the
/// program's memory, as libc's functions do: -1 and errno. None: the call is the kernel's.
std::optional<long> perform_memory_call(long number, const long* arguments,
                                        const void* return_address) noexcept;

}  // namespace hiroba::abi
