// SPDX-License-Identifier: BSD-3-Clause
// Role: has the dynamic loader put a library that is opened later at an address that is free on
// every node: part of the address space kept for this on all of them.
// Invariant: while closed, what is free of it is reserved, so that nothing else goes there; while
// open, everything else that is free in the address space is. The loader asks the kernel for any
// address, and there is one answer only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::omp {

/// Thread: one at a time. Other threads may map memory meanwhile; while the range is open their
/// mappings come to lie in it, too.
class LibraryRange {
public:
    static constexpr std::size_t bytes = std::size_t{2} << 40;

    /// Reserves it; the same address on all nodes with an equal stack limit. `environment` when the
    /// address or the address space is not to be had.
    Result<void> reserve();
    /// The whole range, whatever it holds by now; empty before reserve().
    dsm::AddressRange range() const noexcept { return {begin_, begin_ == 0 ? 0 : bytes}; }

    /// The end of what no library has used yet.
    std::uintptr_t top() const noexcept { return top_; }
    /// Frees [begin, top) and reserves the rest of the address space. `environment` when that is
    /// refused (RLIMIT_AS), other threads map memory all the while, or something here lies below
    /// `top`: nothing has changed then.
    Result<void> open(std::uintptr_t top);
    bool is_open() const noexcept { return open_; }
    /// Gives the rest of the address space back; what is free here stays free until close().
    void stop_steering() noexcept;
    /// Frees what no library will lie in any more, between and above those there are, as far as
    /// their jumps reach, until close(). While open, after stop_steering().
    void free_above() noexcept;
    /// Keeps room for a library's own trampolines and landing pads, equal on all nodes: what its
    /// jumps reach, where that much is left. top() will be below.
    /// @param lowest  of the libraries opened now
    /// @return where no trampoline and no pad may lie
    dsm::AddressRange keep_room_below(std::uintptr_t lowest) noexcept;
    /// Reserves what is free here again; top() is then below everything that is used.
    void close() noexcept;

private:
    std::uintptr_t begin_ = 0, top_ = 0, lowest_used_ = 0;
    std::uintptr_t kept_ = UINTPTR_MAX;  ///< lower end of the room below libraries
    std::uintptr_t changed_to_ = 0;      ///< below it mappings may have come and gone since open()
    bool open_ = false;
    std::vector<dsm::AddressRange> fillers_;
    std::vector<dsm::AddressRange> gaps_above_;  ///< reserved; above the lowest that is used
};

}  // namespace hiroba::omp
