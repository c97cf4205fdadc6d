// SPDX-License-Identifier: BSD-3-Clause
// Role: ranges that one node writes down in global memory, in its page, for all others to read
// without a message.
// Invariant: all zero it is empty. A reader misses what no synchronization has brought it yet.
#pragma once

#include <cstdint>

#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

struct RangeLog {
    /// Thread: one at a time, of the node whose log it is. May fault on global memory.
    void append(dsm::AddressRange range) noexcept;
    /// The first that has the address; empty: none. Thread: any of any node, at once with append().
    dsm::AddressRange find(std::uintptr_t address) const noexcept;

    std::uint64_t count = 0;
    std::uint64_t room = 0;
    dsm::AddressRange* ranges = nullptr;
};

}  // namespace hiroba::abi
