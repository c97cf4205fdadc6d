// SPDX-License-Identifier: BSD-3-Clause
// Role: keeps the addresses of global memory free until an engine maps it there.
// Invariant: engines map at fixed addresses, over whatever lies there. What the kernel places in
// the meantime, above all the memory of many peers, must go elsewhere.
#pragma once

#include <sys/mman.h>

#include "dsm/memory/address_map.hpp"
#include "dsm/memory/kernel_calls.hpp"

namespace hiroba::dsm {

/// Maps `range` without access and without memory. Returns 0, or the kernel's error number
/// (EEXIST: something lies there). Async-signal-safe.
inline int reserve_range(AddressRange range) noexcept {
    const long at =
        kernel_call(SYS_mmap, range.address, range.bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    return kernel_failed(at) ? static_cast<int>(-at) : 0;
}

}  // namespace hiroba::dsm
