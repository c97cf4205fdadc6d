// SPDX-License-Identifier: BSD-3-Clause
// Role: what blocks of omp_alloc() and its kin are known by, given their address alone.
// Invariant: a mark is made of the block's address, so bytes that were copied or are left over from
// another block are none.
#pragma once

#include <cstdint>

namespace hiroba::abi {

enum class BlockMark : std::uint64_t {
    allocatable = 0x9e3779b97f4a7c15,    ///< a Fortran variable was allocated by an allocator
    by_clangs_code = 0xc2b2ae3d27d4eb4f  ///< maybe a depend object
};

/// `block` is one of omp_alloc(); a second mark takes the first one's place.
void mark_block(void* block, BlockMark mark) noexcept;
void unmark_block(void* block) noexcept;
/// Whether `address` is such a block with that mark. `address` may be anything, mapped or not.
bool has_mark(const void* address, BlockMark mark) noexcept;

}  // namespace hiroba::abi
