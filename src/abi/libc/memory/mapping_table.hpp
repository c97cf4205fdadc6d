// SPDX-License-Identifier: BSD-3-Clause
// Role: the books of what this node's program has mapped: blocks of the global heap, of which parts
// may have been unmapped.
// Invariant: extents are disjoint; each lies in a block of the table; a block whose last extent
// goes is handed to the caller to free. What another node maps is not in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "dsm/memory/address_map.hpp"

namespace hiroba::abi {

/// Thread: the caller's lock. Allocates private memory.
class MappingTable {
public:
    struct Block {
        std::size_t bytes = 0;
        std::size_t mapped_bytes = 0;
        bool shows_file = false;   ///< a shared mapping read in: it must not be written
        bool is_reserved = false;  ///< address space of which the program uses a part
    };
    /// A block of which nothing is left.
    struct Empty {
        std::uintptr_t address = 0;
        bool is_reserved = false;
        bool operator==(const Empty&) const = default;
    };

    /// A block of its own, all of it mapped. What the table still had there was freed elsewhere.
    void add(dsm::AddressRange block, bool shows_file, bool is_reserved = false);
    /// Maps `part` of a known block again. False: it lies in none.
    bool add_part(dsm::AddressRange part);
    /// Unmaps `part`; returns the blocks of which nothing is left. They are forgotten.
    std::vector<Empty> remove(dsm::AddressRange part);
    /// Cuts or extends the block at `address`.
    void set_bytes(std::uintptr_t address, std::size_t bytes);

    /// The block `address` lies in, mapped or not.
    std::optional<dsm::AddressRange> block_of(std::uintptr_t address) const;
    bool shows_file(std::uintptr_t address) const;
    bool is_reserved(std::uintptr_t address) const;
    /// Whether all of the block at `address` is mapped.
    bool is_whole(std::uintptr_t address) const;

private:
    using Blocks = std::map<std::uintptr_t, Block>;
    Blocks::const_iterator find(std::uintptr_t address) const;
    std::size_t cut_extents(dsm::AddressRange part);

    Blocks blocks_;                                  ///< by address
    std::map<std::uintptr_t, std::size_t> extents_;  ///< mapped: address and bytes
};

}  // namespace hiroba::abi
