// SPDX-License-Identifier: BSD-3-Clause
// Role: see range_log.hpp.
#include "abi/libc/memory/range_log.hpp"

#include <algorithm>
#include <atomic>

#include "abi/world.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi {

void RangeLog::append(dsm::AddressRange range) noexcept {
    if (count > 0 && ranges[count - 1].end() == range.address) {
        ranges[count - 1].bytes += range.bytes;
        return;
    }
    if (count == room) {
        const std::uint64_t more = std::max<std::uint64_t>(64, 2 * room);
        const std::size_t bytes = more * sizeof(dsm::AddressRange);
        bool zeroed = false;
        void* const block = world()->heap->allocate(bytes, 64, &zeroed);
        if (block == nullptr)
            die(exit_environment, "no room for %lu bytes about protections: set HIROBA_HEAP",
                bytes);
        auto* const moved = static_cast<dsm::AddressRange*>(block);
        std::copy(ranges, ranges + count, moved);
        ranges = moved;  // the former one stays: others may be reading it
        room = more;
    }
    ranges[count] = range;
    // Release: pairs with the acquire in find() of this node's fault handlers.
    std::atomic_ref{count}.store(count + 1, std::memory_order_release);
}

dsm::AddressRange RangeLog::find(std::uintptr_t address) const noexcept {
    // Acquire: pairs with the release in append().
    const std::uint64_t written =
        std::atomic_ref{const_cast<std::uint64_t&>(count)}.load(std::memory_order_acquire);
    const auto found = std::find_if(ranges, ranges + written, [&](const dsm::AddressRange& each) {
        return each.contains(address);
    });
    return found != ranges + written ? *found : dsm::AddressRange{};
}

}  // namespace hiroba::abi
