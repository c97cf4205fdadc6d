// SPDX-License-Identifier: BSD-3-Clause
// Role: what the program and its libraries map before the node is put together: buffers of a
// library's constructor, the arena of a program's own malloc, its break.
// Invariant: all of it lies in one range at an address of its own, or at places that were wished
// for, which become global at take-over as the data of a library does (node 0's bytes win),
// wherever the other nodes' constructors have put theirs.
#pragma once

#include <array>
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

    /// Mappings that lie where the program wished, and how much they may take in all: the arena of
    /// a malloc of its own, for one.
    static constexpr std::size_t placed_max = 4;
    static constexpr std::size_t placed_bytes_max = std::size_t{4} << 30;
    using Ranges = std::array<dsm::AddressRange, 1 + placed_max>;

    bool owns(const void* address) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        return at - base < bytes_max || find_placed(at) != nullptr;
    }

    /// As mmap() of memory that is nobody's file; MAP_FAILED and errno.
    /// @param wish  where it is to lie if that place is free; null: anywhere
    void* map(void* wish, std::size_t bytes, int protection, int flags) noexcept;
    /// As munmap(); the addresses are not handed out again. 0 or -1 and errno.
    int unmap(void* address, std::size_t bytes) noexcept;

    /// What is to be global; no bytes where nothing was mapped. From here on map() keeps within it.
    Ranges announce() noexcept;
    /// Notes what node 0 has announced.
    void agree_on(const Ranges& ranges) noexcept { agreed_ = ranges; }
    bool is_agreed(dsm::AddressRange range) const noexcept;
    /// Makes `range`, which node 0 has announced, ready to be adopted by all; later map() hands
    /// out the rest of it, on node 0, and later unmap() does nothing. 0 or an error number.
    int give_over(dsm::AddressRange range, bool is_first_node) noexcept;
    /// Whether give_over() has been called: protections are the fault engine's.
    bool is_given_over() const noexcept { return given_over_; }
    bool is_announced() const noexcept { return announced_; }

private:
    const dsm::AddressRange* find_placed(std::uintptr_t address) const noexcept {
        for (const dsm::AddressRange& each : placed_)
            if (each.contains(address)) return &each;
        return nullptr;
    }
    bool place(std::uintptr_t wish, std::size_t bytes, int protection, int flags) noexcept;
    int give_over_placed(dsm::AddressRange range, bool is_first_node) noexcept;

    Latch latch_;
    std::array<dsm::AddressRange, placed_max> placed_{};
    Ranges agreed_{};
    std::uintptr_t next_ = base;
    std::uintptr_t limit_ = base + bytes_max;
    bool announced_ = false;
    bool given_over_ = false;
    bool hands_out_ = true;
};

/// Those of this process.
EarlyMappings& early_mappings() noexcept;

}  // namespace hiroba::abi
