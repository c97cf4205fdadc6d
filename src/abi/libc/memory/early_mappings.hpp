// SPDX-License-Identifier: BSD-3-Clause
// Role: what the program and its libraries map before the node is put together: buffers of a
// library's constructor, the arena of a program's own malloc, its break.
// Invariant: all of it lies in one range at an address of its own, which becomes global at
// take-over as the data of a library does (node 0's bytes win), wherever the other nodes'
// constructors have put theirs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/latch.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// Addresses rise and are handed out once. Nothing is reserved: a program that maps nothing early
/// pays nothing. Thread: any.
class EarlyMappings {
public:
    /// Below global memory, above the shadow of the address sanitizer.
    static constexpr std::uintptr_t base = 0x10f0'0000'0000;
    /// Half of what the images of libraries may take: it lies among them.
    static constexpr std::size_t bytes_max = std::size_t{8} << 30;
    /// Room that is global beyond what was in use: a malloc of the program's own may map more for
    /// what the take-over itself allocates.
    static constexpr std::size_t spare_bytes = std::size_t{64} << 20;

    static bool owns(const void* address) noexcept {
        return reinterpret_cast<std::uintptr_t>(address) - base < bytes_max;
    }

    /// As mmap() of memory that is nobody's file; MAP_FAILED and errno.
    void* map(std::size_t bytes, int protection, int flags) noexcept;
    /// As munmap(); the addresses are not handed out again. 0 or -1 and errno.
    int unmap(void* address, std::size_t bytes) noexcept;

    /// What is to be global; none where nothing was mapped. From here on map() keeps within it.
    dsm::AddressRange announce() noexcept;
    /// Makes `range`, which node 0 has announced, ready to be adopted by all; later map() hands
    /// out the rest of it, on node 0, and later unmap() does nothing. 0 or an error number.
    int give_over(dsm::AddressRange range, bool is_first_node) noexcept;
    /// Whether give_over() has been called: protections are the fault engine's.
    bool is_given_over() const noexcept { return given_over_; }
    bool is_announced() const noexcept { return announced_; }

private:
    Latch latch_;
    std::uintptr_t next_ = base;
    std::uintptr_t limit_ = base + bytes_max;
    bool announced_ = false;
    bool given_over_ = false;
    bool hands_out_ = true;
};

/// Those of this process.
EarlyMappings& early_mappings() noexcept;

}  // namespace hiroba::abi
